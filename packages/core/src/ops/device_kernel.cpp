#include "ops/device_kernel.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/copying.h"
#include "runtime/run_on_cpu.h"
#include "rushlight/device_fallback.h"
#include "rushlight/warning.h"

namespace rushlight {
namespace {

std::atomic<DeviceFallback> chosen{DeviceFallback::Error};

/// Returns a tensor that shares the memory of a view.
Tensor tensor_of(const View& v, Device device) {
    int64_t last = v.numel > 0 ? 1 : 0;
    for (int d = 0; d < v.ndim && v.numel > 0; ++d) last += (v.sizes[d] - 1) * v.strides[d];
    auto storage = Storage::wrap(v.data, static_cast<size_t>(last) * itemsize(v.dtype), device,
                                 StorageKind::Foreign, nullptr, nullptr);
    const auto n = static_cast<size_t>(v.ndim);
    return make_over(std::move(storage), IntList(v.sizes, n), IntList(v.strides, n), 0, v.dtype);
}

/// The dtype that determines whether a device's kernel supports a call: see `Backend::lacks`.
DType dtype_of(const KernelArgs& args) {
    if (args.compute != kNoDType) return args.compute;
    for (int i = 0; i < args.num_inputs; ++i)
        if (args.in(i).defined()) return args.in(i).dtype;
    return args.num_outputs ? args.out(0).dtype : kNoDType;
}

bool has(uint64_t dtypes, DType t) { return t != kNoDType && dtypes >> static_cast<int>(t) & 1; }

void warn_once(const char* op, const std::string& where, size_t nbytes) {
    static std::mutex mutex;
    static std::set<std::string> warned;
    {
        std::lock_guard lock(mutex);
        if (!warned.insert(op).second) return;
    }
    char text[300];
    std::snprintf(text, sizeof text,
                  "%s: no kernel for device %s: the operator ran on the CPU, and %zu bytes were copied", op,
                  where.c_str(), nbytes);
    warn(text);
}

/// Runs the CPU's kernel on copies of all operands, and copies the results back.
void call_on_copies(const char* op, Device device, const std::string& where, KernelFn before, KernelFn kernel,
                    const KernelArgs& args, const std::vector<const void*>* written) {
    const int count = args.num_outputs + args.num_inputs;
    std::vector<Tensor> there(static_cast<size_t>(count)), here(there);
    std::vector<View> views(args.tensors, args.tensors + count);
    std::vector<int64_t> strides(static_cast<size_t>(count) * kMaxDims);
    size_t moved = 0;
    const auto goes_back = [&](int i) {
        if (i < args.num_outputs) return true;
        return written && std::find(written->begin(), written->end(), args.tensors[i].data) != written->end();
    };
    for (int i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i);
        View& v = views[at];
        if (!v.defined()) continue;
        there[at] = tensor_of(v, device);
        here[at] = make_tensor(there[at].sizes(), v.dtype);
        if (i >= args.num_outputs) copy_into(here[at], there[at]);
        const size_t bytes = static_cast<size_t>(v.numel) * itemsize(v.dtype);
        const bool back = goes_back(i);
        moved += bytes * (static_cast<size_t>(i >= args.num_outputs) + static_cast<size_t>(back));
        const View seen = here[at].impl()->view();
        int64_t* own = &strides[at * kMaxDims];
        // A dimension of stride 0 has stride 0 in the copy, too, because stride 0 marks reduced dimensions.
        for (int d = 0; d < v.ndim; ++d)
            own[d] = i < args.num_outputs && v.strides[d] == 0 ? 0 : seen.strides[d];
        v.data = seen.data;
        v.strides = own;
        v.contiguous = seen.contiguous;
    }
    warn_once(op, where, moved);
    KernelArgs host = args;
    host.tensors = views.data();
    run_on_cpu(before, kernel, host, args.context ? args.context->random : PhiloxKey{0, 0});
    for (int i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i);
        if (goes_back(i) && there[at].defined()) copy_into(there[at], here[at]);
    }
}

}  // namespace

DeviceFallback device_fallback() { return chosen.load(std::memory_order_relaxed); }
DeviceFallback set_device_fallback(DeviceFallback choice) { return chosen.exchange(choice); }

void call_on_device(const char* op, Device device, const KernelSlots& slots, KernelPart part,
                    KernelArgs&& args, const std::vector<const void*>* written) {
    const auto& of_part = part == KernelPart::Run ? slots.device : slots.before;
    const auto type = static_cast<int>(device.type);
    const uint64_t lacks = lacked_dtypes(device.type, slots);
    const bool lacked = lacks && has(lacks, dtype_of(args));
    KernelFn kernel = of_part[type].load(std::memory_order_acquire);
    if (kernel && !lacked) [[likely]]
        return backend_call(op, device, kernel, std::move(args));
    constexpr auto cpu = static_cast<int>(DeviceType::CPU);
    KernelFn host = of_part[cpu].load(std::memory_order_acquire);
    const std::string where =
        name(device) + (lacked ? " and dtype " + std::string(name(dtype_of(args))) : std::string());
    RL_CHECK(host && device_fallback() == DeviceFallback::Warn, throw_not_implemented,
             "%s: no kernel for device %s\n"
             "hint: set rushlight.backends.device_fallback = \"warn\" to run the operator on the CPU",
             op, where.c_str());
    call_on_copies(op, device, where, part == KernelPart::Run ? slots.before[cpu].load() : nullptr, host,
                   args, written);
}

}  // namespace rushlight
