// Dispatch on dtypes: by the element type, or by the size in bytes for elements that are only copied.
#pragma once

#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// An element of `size` bytes.
template <int size>
struct alignas(size) Bytes {
    unsigned char bytes[size];
};

template <class F>
void by_size(DType dtype, F&& f) {
    switch (itemsize(dtype)) {
        case 1: return f(Bytes<1>());
        case 2: return f(Bytes<2>());
        case 4: return f(Bytes<4>());
        case 8: return f(Bytes<8>());
        default: return f(Bytes<16>());
    }
}

/// Calls `f` with a value of the element type of `dtype`, which must be in the list.
template <class... T, class F>
void by_element_type(Types<T...>, DType dtype, F&& f) {
    if (!((dtype == DTypeOf<T>::value && (f(T()), true)) || ...))
        fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(dtype));
}
/// Calls `f` for element types that have an order. Bools are ordered as bytes.
template <class F>
void by_ordered_type(DType dtype, F&& f) {
    by_element_type(RealNumbers{}, dtype == DType::Bool ? DType::UInt8 : dtype, f);
}

/// Returns a view's elements as row-major memory, whatever the dtype.
const void* dense_bytes(KernelContext* context, const View& v) {
    if (v.contiguous) return v.data;
    void* made = scratch<char>(context, v.numel * static_cast<int64_t>(itemsize(v.dtype)));
    const RowMajor strides(v.sizes, v.ndim);
    queue_copy(View{made, v.sizes, strides.strides, v.numel, v.ndim, v.dtype, 1}, v, context);
    return made;
}

/// An input in a given dtype, in memory that the call does not write: the given view, or a row-major copy.
struct Apart {
    View view;
    RowMajor strides;

    Apart(const KernelArgs& args, const View& given, DType dtype, const View& written)
        : view(given), strides(given.sizes, given.ndim) {
        if (given.dtype == dtype && !overlap(given, written)) return;
        void* made = scratch<char>(args.context, given.numel * static_cast<int64_t>(itemsize(dtype)));
        view = {made, given.sizes, strides.strides, given.numel, given.ndim, dtype, 1};
        queue_copy(view, given, args.context);
    }
    /// Used for operators that do not write their inputs.
    Apart(const KernelArgs& args, const View& given, DType dtype) : Apart(args, given, dtype, View{}) {}
    Apart(const Apart&) = delete;

  private:
    static void span_of(const View& v, const char*& begin, const char*& end) {
        const auto size = static_cast<int64_t>(itemsize(v.dtype));
        begin = v.as<const char>();
        end = begin + size;
        for (int d = 0; d < v.ndim; ++d) {
            const int64_t reach = (v.sizes[d] - 1) * v.strides[d] * size;
            (reach < 0 ? begin : end) += reach;
        }
    }
    static bool overlap(const View& a, const View& b) {
        if (a.numel == 0 || b.numel == 0) return false;
        const char *a_begin, *a_end, *b_begin, *b_end;
        span_of(a, a_begin, a_end);
        span_of(b, b_begin, b_end);
        return a_begin < b_end && b_begin < a_end;
    }
};

}  // namespace
}  // namespace rushlight::cuda
