// The events that a tracer receives besides operators. Operators reach it as a stage of dispatch: Stage::Tracer, above
// gradients and transforms, or Stage::Recorder, below them.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// The functions of a tracer. They stay valid until the process ends.
struct TracerFunctions {
    /// `op` is about to read the values of `t`, or to export its memory. To refuse, it raises. Called on
    /// threads where the stage is on.
    void (*values_read)(const char* op, const Tensor& t);
    /// A storage got memory from our allocator or a device's, or gave it back, on any thread, as an Observer is called. Called
    /// while the tracer watches memory. They must not throw and must not call operators.
    void (*allocated)(const void* data);
    void (*released)(const void* data);
};

/// Installs the functions of the process's tracer (null: none).
RL_API void set_tracer_functions(const TracerFunctions* functions);
/// Whether memory is reported to the tracer.
RL_API void set_tracer_watches_memory(bool on);

inline constexpr StageMask kTracingStages = bit(Stage::Tracer) | bit(Stage::Recorder);
inline bool is_tracing() { return dispatch_state.on & ~dispatch_state.off & kTracingStages; }
RL_API void report_values_read(const char* op, const Tensor& t);

}  // namespace rushlight
