#include "ops/create.h"

#include <algorithm>

#include "cpu/creation.h"
#include "ops/copying.h"
#include "ops/cpu_kernel.h"
#include "ops/element_check.h"
#include "ops/numbers.h"
#include "ops/outputs.h"
#include "ops/params.h"
#include "rushlight/backend.h"

namespace rushlight {
namespace {

Scalar number(const KernelArgs& k, int i) { return to_scalar(k.params[i]); }

void fill_thunk(const KernelArgs& k) { cpu::fill(k.out(0), number(k, 0)); }
void range_thunk(const KernelArgs& k) { cpu::range(k.out(0), number(k, 0), number(k, 1)); }
void steps_thunk(const KernelArgs& k) { cpu::steps(k.out(0), number(k, 0), number(k, 1)); }
void powers_thunk(const KernelArgs& k) { cpu::powers(k.out(0), number(k, 0), number(k, 1), number(k, 2)); }
void eye_thunk(const KernelArgs& k) { cpu::eye(k.out(0)); }

void run(SharedKernel& kernel, const Tensor& t, const Scalar* numbers, int count) {
    if (t.numel() == 0 || t.device().type == DeviceType::Meta) return;
    const Numbers<3> given(numbers, count);
    const auto device = static_cast<int>(t.device().type);
    const KernelFn found = kernel.slots.device[device].load(std::memory_order_acquire);
    const View view = t.impl()->view();
    KernelArgs args{sizeof(KernelArgs), 1,      0, static_cast<uint16_t>(count), t.dtype(), kNoDType, &view,
                    given.params(),     nullptr};
    if (t.device().type == DeviceType::CPU) return call_cpu_kernel(found, args);
    if (found) {
        record_current_use(*t.impl()->storage());
        return backend_call(kernel.name, t.device(), found, std::move(args));
    }
    // If all elements are equal, one element on the host is enough.
    const Tensor host = make_tensor(&kernel == &fill_kernel ? IntList() : t.sizes(), t.dtype());
    run(kernel, host, numbers, count);
    copy_into(t, host);
}

}  // namespace

SharedKernel fill_kernel{"fill", {{fill_thunk}}};
SharedKernel range_kernel{"range", {{range_thunk}}};
SharedKernel steps_kernel{"steps", {{steps_thunk}}};
SharedKernel powers_kernel{"powers", {{powers_thunk}}};
SharedKernel eye_kernel{"eye", {{eye_thunk}}};

std::span<SharedKernel* const> shared_kernels() {
    static SharedKernel* const all[] = {&copy_kernel,   &fill_kernel, &range_kernel, &steps_kernel,
                                        &powers_kernel, &eye_kernel,  &check_kernel};
    return all;
}

void fill_with(const Tensor& t, Scalar value) {
    const Scalar one = fill_element(value, t.dtype());
    run(fill_kernel, t, &one, 1);
}

NewTensor::NewTensor(IntList sizes, IntList strides, DType dtype, Device device)
    : dtype_(dtype), device_(device), strided_(true) {
    set_sizes(sizes);
    std::copy(strides.begin(), strides.end(), strides_);
}

void NewTensor::set_sizes(IntList sizes) {
    RL_CHECK(sizes.size() <= kMaxDims, throw_runtime, "a tensor has at most %d dimensions, got %zu", kMaxDims,
             sizes.size());
    ndim_ = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), sizes_);
}

NewTensor& NewTensor::written_by(SharedKernel& kernel, std::initializer_list<Scalar> numbers) {
    kernel_ = &kernel;
    count_ = static_cast<int>(numbers.size());
    std::copy(numbers.begin(), numbers.end(), numbers_);
    return *this;
}

NewTensor& NewTensor::filled_with(Scalar value) {
    return written_by(fill_kernel, {fill_element(value, dtype_)});
}

Tensor NewTensor::allocate() const {
    const Device device = resolve(device_);
    if (like_) return make_in_format(op_, *like_, dtype_, device, format_);
    const IntList sizes(sizes_, static_cast<size_t>(ndim_));
    if (strided_) return make_strided(sizes, IntList(strides_, sizes.size()), dtype_, device);
    return make_in_format(sizes, dtype_, device, format_);
}

Tensor NewTensor::make(bool requires_grad) const {
    Tensor t = allocate();
    if (kernel_) run(*kernel_, t, numbers_, count_);
    if (requires_grad) t.set_requires_grad(true);
    return t;
}

void NewTensor::write_to(const char* op, const Tensor& out) const {
    const IntList sizes = like_ ? like_->sizes() : IntList(sizes_, static_cast<size_t>(ndim_));
    resize_out(op, out, sizes, dtype_);
    begin_write(op, out);
    if (kernel_) run(*kernel_, out, numbers_, count_);
}

}  // namespace rushlight
