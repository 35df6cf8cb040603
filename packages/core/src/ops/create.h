// Creation of tensors by operators of kind "create". The rule of such an operator determines the geometry, dtype and device,
// and selects the kernel that writes the elements.
#pragma once

#include <initializer_list>

#include "dispatch/shared_kernel.h"
#include "ops/memory_format.h"

namespace rushlight {

// The kernels, each with the numbers that it receives. They write tensors of any dtype and strides. Numbers are computed in
// int64, float64 or complex128, and then converted. If a device has no such kernel, the CPU writes the elements and they are
// copied to the device.
extern SharedKernel fill_kernel;  // value
extern SharedKernel range_kernel;  // start, step: element i is start + i * step; integers wrap around
extern SharedKernel steps_kernel;  // first, last: equal steps that include both ends
extern SharedKernel
    powers_kernel;  // base, first, last: powers whose exponents have equal steps that include both ends
extern SharedKernel eye_kernel;  // ones on the diagonal of a matrix, else zeros

/// Writes `value` to every element, without calling any stage. The dtype of `t` must be able to represent `value`. The
/// caller must have increased the version of `t` for this write.
void fill_with(const Tensor& t, Scalar value);

/// The properties of a new tensor. They are determined by an operator's rule.
class NewTensor {
  public:
    /// Describes a row-major tensor.
    NewTensor(IntList sizes, DType dtype, Device device) : dtype_(dtype), device_(device) {
        set_sizes(sizes);
    }
    /// Describes a tensor with given strides, in elements.
    NewTensor(IntList sizes, IntList strides, DType dtype, Device device);
    /// Describes a tensor in a memory format. Preserve stands for the row-major format.
    NewTensor(IntList sizes, DType dtype, Device device, MemoryFormat format)
        : NewTensor(sizes, dtype, device) {
        format_ = format;
    }
    /// Describes a tensor of the shape of `like`. `like` must exist until `make` is called.
    NewTensor(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format)
        : dtype_(dtype), device_(device), like_(&like), op_(op), format_(format) {}

    /// Sets the kernel that writes the elements. Without a kernel, they stay uninitialised.
    NewTensor& written_by(SharedKernel& kernel, std::initializer_list<Scalar> numbers);
    /// Sets the value with which `make` fills the tensor. Raises RuntimeError if the dtype cannot represent the value.
    NewTensor& filled_with(Scalar value);

    Tensor make(bool requires_grad) const;
    /// Writes the elements to `out`, which must have the dtype and device of the new tensor, and is resized to its shape.
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
