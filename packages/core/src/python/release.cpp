#include "python/release.h"

#include <atomic>

namespace rushlight::python {
namespace {

struct Waiting {
    void (*function)(void*);
    void* context;
    Waiting* next;
};
std::atomic<Waiting*> waiting{nullptr};

int pending_call(void*) {
    run_waiting_releases();
    return 0;
}

}  // namespace

void run_with_gil(void (*function)(void*), void* context) {
    if (!Py_IsInitialized()) return;  // the memory is leaked
    if (PyGILState_Check()) return function(context);
    auto* entry = new Waiting{function, context, waiting.load(std::memory_order_relaxed)};
    while (!waiting.compare_exchange_weak(entry->next, entry, std::memory_order_release,
                                          std::memory_order_relaxed)) {}
    // If Python's list of pending calls is full, a pending call that another thread has added runs these releases
    // later.
    Py_AddPendingCall(pending_call, nullptr);
}

void run_waiting_releases() {
    if (!waiting.load(std::memory_order_relaxed)) return;
    Waiting* entry = waiting.exchange(nullptr, std::memory_order_acquire);
    while (entry) {
        Waiting* next = entry->next;
        entry->function(entry->context);
        delete entry;
        entry = next;
    }
}

}  // namespace rushlight::python
