// How an operator of kind "create" makes its tensor: the rule names geometry, dtype and device, and the kernel that writes the
// elements.
#pragma once

#include <initializer_list>

#include "dispatch/shared_kernel.h"
#include "ops/memory_format.h"

namespace rushlight {

// The kernels, and the numbers that each is given. They write a tensor of any dtype and strides; numbers are computed in int64,
// float64 or complex128 and converted. For a device without such a kernel, the CPU writes the elements, which are then
// copied.
extern SharedKernel fill_kernel;  // value
extern SharedKernel range_kernel;  // start, step: start + i * step, for i from 0; integers wrap
extern SharedKernel steps_kernel;  // first, last: equal steps, both included
extern SharedKernel
    powers_kernel;  // base, first, last: powers whose exponents go in equal steps, both included
extern SharedKernel eye_kernel;  // ones on the diagonal of a matrix, else zeros

/// Writes `value`, which the dtype of `t` must hold, into every element, below all stages. The caller has counted the write.
void fill_with(const Tensor& t, Scalar value);

/// The properties of a new tensor that a rule determines.
class NewTensor {
  public:
    /// Row-major.
    NewTensor(IntList sizes, DType dtype, Device device) : dtype_(dtype), device_(device) {
        set_sizes(sizes);
    }
    /// With strides in elements.
    NewTensor(IntList sizes, IntList strides, DType dtype, Device device);
    /// In one of the formats; Preserve is row-major.
    NewTensor(IntList sizes, DType dtype, Device device, MemoryFormat format)
        : NewTensor(sizes, dtype, device) {
        format_ = format;
    }
    /// Of the shape of `like`, which must exist until the tensor is made.
    NewTensor(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format)
        : dtype_(dtype), device_(device), like_(&like), op_(op), format_(format) {}

    /// The kernel that writes the elements; without it they stay uninitialised.
    NewTensor& written_by(SharedKernel& kernel, std::initializer_list<Scalar> numbers);
    /// Raises RuntimeError if the dtype cannot represent the element.
    NewTensor& filled_with(Scalar value);

    Tensor make(bool requires_grad) const;
    /// Writes it over `out`, which has its dtype and device and gets its shape.
    void write_to(const char* op, const Tensor& out) const;

  private:
    void set_sizes(IntList sizes);
    Tensor allocate() const;

    DType dtype_;
    Device device_;
    const Tensor* like_ = nullptr;
    const char* op_ = nullptr;
    MemoryFormat format_ = MemoryFormat::Contiguous;
    bool strided_ = false;
    int ndim_ = 0, count_ = 0;
    SharedKernel* kernel_ = nullptr;
    Scalar numbers_[3];
    int64_t sizes_[kMaxDims], strides_[kMaxDims];
};

}  // namespace rushlight
