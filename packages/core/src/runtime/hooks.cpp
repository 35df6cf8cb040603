#include "runtime/hooks.h"

namespace rushlight {

constinit std::atomic<const Observer*> detail::observer{nullptr};
constinit std::atomic<const Observer*> detail::memory_observer{nullptr};

const Observer* set_observer(const Observer* observer) {
    detail::memory_observer.store(observer && observer->allocated && observer->released ? observer : nullptr);
    return detail::observer.exchange(observer);
}

void detail::report_allocated(const void* data, size_t nbytes, Device device) {
    if (auto* o = memory_observer.load(std::memory_order_acquire); o && data)
        o->allocated(data, nbytes, device);
}

void detail::report_released(const void* data, size_t nbytes, Device device) {
    if (auto* o = memory_observer.load(std::memory_order_acquire); o && data)
        o->released(data, nbytes, device);
}

}  // namespace rushlight
