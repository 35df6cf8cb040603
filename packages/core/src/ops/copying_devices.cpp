// Copies in which a device takes part. Bytes cross between host and device only as whole contiguous tensors
// of one dtype; converting, broadcasting and striding happen on the side that has the kernel for it.
#include <algorithm>

#include "ops/copying.h"
#include "rushlight/backend.h"
#include "rushlight/tensor.h"

namespace rushlight {

namespace {

bool on_host(const Tensor& t) { return t.device().type == DeviceType::CPU; }

bool same_shape(const Tensor& a, const Tensor& b) {
    return std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end());
}

size_t nbytes(const Tensor& t) { return static_cast<size_t>(t.numel()) * itemsize(t.dtype()); }

/// Whether the bytes of one are the bytes of the other.
bool plain(const Tensor& target, const Tensor& source) {
    return target.dtype() == source.dtype() && target.is_contiguous() && source.is_contiguous() &&
           same_shape(target, source);
}

void copy_on_device(const Tensor& target, const Tensor& source) {
    Device device = target.device();
    if (target.impl()->storage() == source.impl()->storage() &&
        target.impl()->data() != source.impl()->data()) {
        // They may overlap: through a copy.
        Tensor apart = make_tensor(source.sizes(), source.dtype(), device);
        if (source.is_contiguous()) {
            backend_copy_bytes(CopyKind::DeviceToDevice, device, apart.impl()->data(), source.impl()->data(),
                               nbytes(source));
        } else {
            copy_on_device(apart, source);
        }
        return copy_on_device(target, apart);
    }
    if (plain(target, source)) {
        if (target.impl()->data() == source.impl()->data()) return;
        return backend_copy_bytes(CopyKind::DeviceToDevice, device, target.impl()->data(),
                                  source.impl()->data(), nbytes(target));
    }
    const Backend& backend = require_backend(device.type);
    BackendKernel kernel = nullptr;
    check_backend(backend.kernel("copy", 0, &kernel), backend, "looking up a kernel");
    RL_CHECK(kernel, throw_not_implemented, "copy_: the backend of %s converts no dtypes or strides",
             name(device).c_str());
    int64_t strides[kMaxDims];
    auto lead = target.dim() - source.dim();
    for (int64_t d = 0; d < target.dim(); ++d)
        strides[d] = d < lead || source.sizes()[static_cast<size_t>(d - lead)] == 1
                         ? 0
                         : source.strides()[static_cast<size_t>(d - lead)];
    View views[2] = {target.impl()->view(), source.impl()->view()};
    views[1].sizes = views[0].sizes;
    views[1].strides = strides;
    views[1].numel = views[0].numel;
    views[1].ndim = views[0].ndim;
    views[1].contiguous = source.is_contiguous() && same_shape(target, source);
    backend_call(device, to_slot(kernel), {sizeof(KernelArgs), 1, 1, 0, views, nullptr, nullptr});
}

}  // namespace

void copy_across_devices(const Tensor& target, const Tensor& source) {
    if (target.numel() == 0) return;
    RL_CHECK(source.device().type != DeviceType::Meta, throw_not_implemented,
             "copy_: a tensor on the meta device has no data to copy to %s", name(target.device()).c_str());
    if (target.device().type == DeviceType::Meta) return;
    if (!on_host(target) && !on_host(source)) {
        if (target.device() == source.device()) return copy_on_device(target, source);
        Tensor between = make_tensor(source.sizes(), source.dtype());
        copy_across_devices(between, source);
        return copy_across_devices(target, between);
    }
    if (on_host(source)) {
        Tensor bytes = source;
        if (source.dtype() != target.dtype() || !source.is_contiguous()) {
            bytes = make_tensor(source.sizes(), target.dtype());
            copy_into(bytes, source);
        }
        bool direct = plain(target, bytes);
        Tensor arrived = direct ? target : make_tensor(source.sizes(), target.dtype(), target.device());
        backend_copy_bytes(CopyKind::HostToDevice, target.device(), arrived.impl()->data(),
                           bytes.impl()->data(), nbytes(bytes));
        if (!direct) copy_on_device(target, arrived);
        return;
    }
    Tensor bytes = source;
    if (!source.is_contiguous()) {
        bytes = make_tensor(source.sizes(), source.dtype(), source.device());
        copy_on_device(bytes, source);
    }
    bool direct = plain(target, bytes);
    Tensor arrived = direct ? target : make_tensor(source.sizes(), source.dtype());
    backend_copy_bytes(CopyKind::DeviceToHost, source.device(), arrived.impl()->data(), bytes.impl()->data(),
                       nbytes(bytes));
    if (!direct) copy_into(target, arrived);
}

}  // namespace rushlight
