#if RUSHLIGHT_WITH_ONEDNN

#include "cpu/onednn/library.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "runtime/library.h"
#include "runtime/per_thread.h"
#include "rushlight/error.h"

namespace rushlight::cpu::onednn {
namespace {

rushlight::detail::LazyLibrary library("librushlight_dnnl.so");
std::atomic<bool> switched_on{true}, ends{false};

Functions load() {
    Functions f;
#define RL_LOAD(name) f.name = library.function<std::remove_pointer_t<decltype(f.name)>>("dnnl_" #name);
    RL_ONEDNN_FUNCTIONS(RL_LOAD)
#undef RL_LOAD
    return f;
}

bool look() {
    const char* compute = std::getenv("RUSHLIGHT_COMPUTE");
    if (compute != nullptr && std::strcmp(compute, "plain") == 0) return false;
    RL_CHECK(compute == nullptr || *compute == '\0' || std::strcmp(compute, "onednn") == 0, throw_runtime,
             "RUSHLIGHT_COMPUTE: must be \"onednn\" or \"plain\", got \"%s\"", compute);
    const bool found = library.available();
    if (found) switch_off_at_exit();
    return found;
}

}  // namespace

bool available() {
    static const bool yes = look();
    return yes;
}

bool enabled() {
    return switched_on.load(std::memory_order_relaxed) && !ends.load(std::memory_order_relaxed) &&
           available();
}
void switch_off_at_exit() {
    static_cast<void>(std::atexit([] { ends.store(true, std::memory_order_relaxed); }));
}
void enable(bool on) { switched_on.store(on, std::memory_order_relaxed); }

const Functions& functions() {
    static const Functions loaded = load();
    return loaded;
}

dnnl_engine_t engine() {
    static const dnnl_engine_t made = [] {
        dnnl_engine_t e;
        check(functions().engine_create(&e, dnnl_cpu, 0), "engine");
        return e;
    }();
    return made;
}

dnnl_primitive_attr_t attributes() {
    static const dnnl_primitive_attr_t made = [] {
        dnnl_primitive_attr_t a;
        check(functions().primitive_attr_create(&a), "attributes");
        check(functions().primitive_attr_set_scratchpad_mode(a, dnnl_scratchpad_mode_user), "attributes");
        return a;
    }();
    return made;
}

dnnl_stream_t stream() {
    struct Owned {
        dnnl_stream_t handle;
        Owned() { check(functions().stream_create(&handle, engine(), dnnl_stream_default_flags), "stream"); }
        ~Owned() { functions().stream_destroy(handle); }
    };
    return PerThread<Owned>::get().handle;
}

void check(dnnl_status_t status, const char* what) {
    RL_CHECK(status != dnnl_out_of_memory, throw_out_of_memory, "oneDNN: out of memory in %s", what);
    RL_CHECK(status == dnnl_success, throw_runtime, "oneDNN: %s failed with status %d", what,
             static_cast<int>(status));
}

}  // namespace rushlight::cpu::onednn

#endif
