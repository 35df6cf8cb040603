// Copies from or to a device. Only whole contiguous tensors of one dtype are transferred between host and device.
// Conversion, broadcasting and strided copies happen on the side that has a kernel for them.
#include <algorithm>

#include "ops/copying.h"
#include "rushlight/backend.h"
#include "rushlight/caller_locks.h"
#include "rushlight/graphs.h"
#include "rushlight/streams.h"
#include "rushlight/tensor.h"

namespace rushlight {

namespace {

bool on_host(const Tensor& t) { return t.device().type == DeviceType::CPU; }

bool same_shape(const Tensor& a, const Tensor& b) {
    return std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end());
}

size_t nbytes(const Tensor& t) { return static_cast<size_t>(t.numel()) * itemsize(t.dtype()); }

/// Whether copying the bytes of `source` to `target` suffices.
bool plain(const Tensor& target, const Tensor& source) {
    return target.dtype() == source.dtype() && target.is_contiguous() && source.is_contiguous() &&
           same_shape(target, source);
}

Storage& memory(const Tensor& t) { return *t.impl()->storage(); }

bool is_pinned(const Tensor& t) { return memory(t).kind() == StorageKind::Pinned; }

/// Copies bytes between the host and a device, within a device, or between two devices of one type. If the host's memory is
/// pinned and `non_blocking` is true, the host does not wait for the copy.
void copy_bytes(const Tensor& target, const Tensor& source, bool non_blocking) {
    DeviceCopy copy{.struct_size = sizeof(DeviceCopy),
                    .kind = CopyKind::DeviceToDevice,
                    .until = CopyUntil::Queued,
                    .target_device = std::max<int32_t>(target.device().index, 0),
                    .source_device = std::max<int32_t>(source.device().index, 0),
                    .target = target.impl()->data(),
                    .source = source.impl()->data(),
                    .nbytes = nbytes(source),
                    .stream = nullptr};
    if (copy.nbytes == 0) return;
    const Tensor *host = nullptr, *there = &target;
    if (on_host(source)) {
        copy.kind = CopyKind::HostToDevice;
        copy.until = CopyUntil::SourceRead;
        host = &source;
    } else if (on_host(target)) {
        copy.kind = CopyKind::DeviceToHost;
        copy.until = CopyUntil::Done;
        host = &target;
        there = &source;
    } else if (target.device() != source.device()) {
        copy.kind = CopyKind::PeerToPeer;
    }
    const Device device = there->device();
    copy.stream = current_stream(device);
    const bool queued = host && non_blocking && is_pinned(*host) && has_streams(device);
    if (queued) copy.until = CopyUntil::Queued;
    if (copy.until != CopyUntil::Queued)
        detail::refuse_in_capture("copying between host and device", device, copy.stream);
    for (const Tensor* t : {&target, &source}) record_current_use(memory(*t));
    void* behind = copy.kind == CopyKind::PeerToPeer ? current_stream(source.device()) : nullptr;
    if (copy.kind == CopyKind::PeerToPeer) order_streams(source.device(), behind, device, copy.stream);
    const Backend& b = require_backend(device.type);
    BackendStatus status;
    if (copy.until == CopyUntil::Done) {
        const WithoutCallerLocks others_run(WithoutCallerLocks::While::Waiting);
        status = b.copy(&copy);
    } else {
        status = b.copy(&copy);
    }
    check_backend(status, b, "copying");
    if (copy.kind == CopyKind::PeerToPeer) order_streams(device, copy.stream, source.device(), behind);
    if (queued && is_capturing(device, copy.stream)) {
        detail::keep_in_capture(memory(*host), device, copy.stream);
    } else if (queued) {
        record_pinned_copy(memory(*host), device, copy.stream);
        memory(*host).set_copied(true);
    }
}

void copy_on_device(const Tensor& target, const Tensor& source) {
    Device device = target.device();
    if (overlaps(target, source)) {  // the copy goes through a temporary tensor
        Tensor apart = make_tensor(source.sizes(), source.dtype(), device);
        if (source.is_contiguous()) {
            copy_bytes(apart, source, true);
        } else {
            copy_on_device(apart, source);
        }
        return copy_on_device(target, apart);
    }
    if (plain(target, source)) {
        if (target.impl()->data() == source.impl()->data()) return;
        return copy_bytes(target, source, true);
    }
    KernelFn kernel = copy_kernel.slots.device[static_cast<int>(device.type)].load(std::memory_order_acquire);
    RL_CHECK(kernel, throw_not_implemented, "copy_: the backend of %s does not convert dtypes or strides",
             name(device).c_str());
    record_current_use(memory(target));
    record_current_use(memory(source));
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
    backend_call("copy_", device, kernel,
                 {sizeof(KernelArgs), 1, 1, 0, target.dtype(), kNoDType, views, nullptr, nullptr});
}

}  // namespace

void copy_across_devices(const Tensor& target, const Tensor& source, bool non_blocking) {
    if (target.numel() == 0) return;
    RL_CHECK(source.device().type != DeviceType::Meta, throw_not_implemented,
             "copy_: Cannot copy out of meta tensor; no data! The target is on %s",
             name(target.device()).c_str());
    if (target.device().type == DeviceType::Meta) return;
    if (target.device() == source.device()) return copy_on_device(target, source);
    if (!on_host(target) && !on_host(source) && target.device().type != source.device().type) {
        Tensor between = make_tensor(source.sizes(), source.dtype());
        copy_across_devices(between, source);
        return copy_across_devices(target, between);
    }
    // The dtype of the transfer: a source on the host is converted before the transfer, a source on a device after it.
    Tensor bytes = source;
    const DType dtype = on_host(source) ? target.dtype() : source.dtype();
    if (source.dtype() != dtype || !source.is_contiguous()) {
        bytes = make_tensor(source.sizes(), dtype, source.device());
        copy_into(bytes, source);
    }
    const bool writes_target = plain(target, bytes);
    const Tensor arrived = writes_target ? target : make_tensor(source.sizes(), dtype, target.device());
    copy_bytes(arrived, bytes, non_blocking);
    if (!writes_target) copy_into(target, arrived);
}

}  // namespace rushlight
