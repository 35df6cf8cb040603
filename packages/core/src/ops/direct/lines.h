// Elements along one dimension, line by line: for operators that look at a whole line at a time.
#pragma once

#include <type_traits>

#include "ops/copying.h"
#include "ops/views.h"
#include "rushlight/half.h"

namespace rushlight::direct {

/// Raises where there is no kernel; meta tensors pass.
inline void host_only(const char* op, const Tensor& t) {
    RL_CHECK(t.device().type == DeviceType::CPU || t.device().type == DeviceType::Meta, throw_not_implemented,
             "%s: no kernel for device %s", op, name(t.device()).c_str());
}
inline bool is_meta(const Tensor& t) { return t.device().type == DeviceType::Meta; }

/// Calls f with a value of the element type; bools are read as uint8.
template <class F>
void with_type(const char* op, DType t, F f) {
    switch (t) {
        case DType::Bool: return f(uint8_t());
        case DType::UInt8: return f(uint8_t());
        case DType::Int8: return f(int8_t());
        case DType::Int16: return f(int16_t());
        case DType::Int32: return f(int32_t());
        case DType::Int64: return f(int64_t());
        case DType::UInt16: return f(uint16_t());
        case DType::UInt32: return f(uint32_t());
        case DType::UInt64: return f(uint64_t());
        case DType::Float16: return f(Half());
        case DType::BFloat16: return f(BFloat16());
        case DType::Float32: return f(float());
        case DType::Float64: return f(double());
        default: throw_not_implemented("%s: not defined for dtype %s", op, name(t));
    }
}
/// The same with complex numbers: for what adds and multiplies, and compares no order.
template <class F>
void with_number(const char* op, DType t, F f) {
    switch (t) {
        case DType::Complex64: return f(Complex<float>());
        case DType::Complex128: return f(Complex<double>());
        default: return with_type(op, t, f);
    }
}
/// For floating-point types alone.
template <class F>
void with_floating(const char* op, DType t, F f) {
    switch (t) {
        case DType::Float16: return f(Half());
        case DType::BFloat16: return f(BFloat16());
        case DType::Float32: return f(float());
        case DType::Float64: return f(double());
        default: throw_not_implemented("%s: needs a floating-point tensor, got dtype %s", op, name(t));
    }
}

/// In what numbers of an element type are computed: half types in float.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// The same values in row-major order; the tensor itself where it is so already.
inline Tensor row_major(const Tensor& t, DType dtype) {
    if (t.is_contiguous() && t.dtype() == dtype) return t;
    Tensor out = make_tensor(t.sizes(), dtype, t.device());
    copy_into(out, t);
    return out;
}
inline Tensor row_major(const Tensor& t) { return row_major(t, t.dtype()); }

/// A 0-d tensor of any dtype. A complex number is no value of a real one.
inline Tensor one_element(const char* op, Scalar value, DType dtype) {
    RL_CHECK(!value.is_complex() || is_complex(dtype), throw_runtime,
             "%s: a complex number does not fit a tensor of dtype %s", op, name(dtype));
    return row_major(make_scalar(value, value.dtype()), dtype);
}

/// The lines of a tensor along `dim` where they lie, in row-major order of the other dimensions. A 0-d tensor is one line.
class StridedLines {
  public:
    StridedLines(const Tensor& t, int dim) {
        for (int d = 0; d < t.dim(); ++d) {
            if (d == dim) {
                n = t.sizes()[d];
                stride = t.strides()[d];
            } else {
                sizes_[ndim_] = t.sizes()[d];
                strides_[ndim_++] = t.strides()[d];
                count *= t.sizes()[d];
            }
        }
    }
    /// Where a line begins, in elements.
    int64_t offset(int64_t line) const {
        int64_t at = 0;
        for (int d = ndim_ - 1; d >= 0; --d) {
            at += line % sizes_[d] * strides_[d];
            line /= sizes_[d];
        }
        return at;
    }
    /// How many lines a thread takes at least.
    int64_t grain() const { return n < 4096 ? 4096 / (n + 1) + 1 : 1; }

    int64_t n = 1, stride = 1, count = 1;

  private:
    int ndim_ = 0;
    int64_t sizes_[kMaxDims], strides_[kMaxDims];
};

/// The shape without, or with a single element along, `dim`.
inline std::vector<int64_t> reduced_shape(const Tensor& t, int dim, bool keepdim) {
    std::vector<int64_t> shape = t.shape();
    if (shape.empty()) return shape;
    if (keepdim) shape[static_cast<size_t>(dim)] = 1;
    else shape.erase(shape.begin() + dim);
    return shape;
}

}  // namespace rushlight::direct
