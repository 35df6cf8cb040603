#include "runtime/hooks.h"

#include "rushlight/tracing.h"

namespace rushlight {

constinit std::atomic<const Observer*> detail::observer{nullptr};
constinit std::atomic<uint8_t> detail::memory_watchers{0};

namespace {

constinit std::atomic<const Observer*> memory_observer{nullptr};
constinit std::atomic<const TracerFunctions*> tracer{nullptr};
constinit std::atomic<const TracerFunctions*> memory_tracer{nullptr};

void set_watcher(uint8_t who, bool on) {
    if (on) detail::memory_watchers.fetch_or(who);
    else detail::memory_watchers.fetch_and(static_cast<uint8_t>(~who));
}

}  // namespace

const Observer* set_observer(const Observer* observer) {
    const bool wanted = observer && observer->allocated && observer->released;
    memory_observer.store(wanted ? observer : nullptr);
    set_watcher(1, wanted);
    return detail::observer.exchange(observer);
}

void set_tracer_functions(const TracerFunctions* functions) { tracer.store(functions); }

void set_tracer_watches_memory(bool on) {
    const TracerFunctions* functions = tracer.load();
    const bool wanted = on && functions && functions->allocated && functions->released;
    memory_tracer.store(wanted ? functions : nullptr);
    set_watcher(2, wanted);
}

void report_values_read(const char* op, const Tensor& t) {
    const TracerFunctions* functions = tracer.load(std::memory_order_acquire);
    if (functions && functions->values_read) functions->values_read(op, t);
}

void detail::report_allocated(const void* data, size_t nbytes, Device device) {
    if (!data) return;
    if (auto* o = memory_observer.load(std::memory_order_acquire)) o->allocated(data, nbytes, device);
    if (auto* t = memory_tracer.load(std::memory_order_acquire)) t->allocated(data);
}

void detail::report_released(const void* data, size_t nbytes, Device device) {
    if (!data) return;
    if (auto* o = memory_observer.load(std::memory_order_acquire)) o->released(data, nbytes, device);
    if (auto* t = memory_tracer.load(std::memory_order_acquire)) t->released(data);
}

}  // namespace rushlight
