// The events that a tracer receives besides operators. Operators are passed to a tracer by a stage of dispatch:
// Stage::Tracer, which comes before autograd and transforms, or Stage::Recorder, which comes after them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// The functions of a tracer. They must stay valid until the process ends.
struct TracerFunctions {
    /// Called before `op` reads the values of `t` or exports its memory. Raises an error to prevent this. Called only
    /// on threads on which one of the tracer's stages is enabled.
    void (*values_read)(const char* op, const Tensor& t);
    /// Like the functions of the same names in Observer: called on any thread when a storage has received memory from
    /// our allocator or a device's allocator, or has returned it. Called only if set_tracer_watches_memory(true) was
    /// called. Must not throw and must not call operators.
    void (*allocated)(const void* data);
    void (*released)(const void* data);
};

/// Installs the functions of the process's tracer; null removes them.
RL_API void set_tracer_functions(const TracerFunctions* functions);
/// Sets whether the tracer's functions `allocated` and `released` are called.
RL_API void set_tracer_watches_memory(bool on);

inline constexpr StageMask kTracingStages = bit(Stage::Tracer) | bit(Stage::Recorder);
inline bool is_tracing() { return dispatch_state.on & ~dispatch_state.off & kTracingStages; }
RL_API void report_values_read(const char* op, const Tensor& t);

}  // namespace rushlight
