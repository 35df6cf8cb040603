// Pointwise operators from their loops.
#pragma once

#include "cuda/loops.h"
#include "rushlight/backend.h"

namespace rushlight::cuda {

struct Pointwise {
    enum class Result : uint8_t { Compute, Bool, Real };  // Real: of complex numbers their parts' dtype

    const char* name;
    const LoopTable* loops;
    uint8_t num_inputs;
    uint8_t bool_inputs;  // bit i: input i is a condition
    uint8_t num_params;
    Result result;
};

/// The kernel of an operator, as core calls it.
BackendStatus run_pointwise(const Pointwise& op, const KernelArgs& args);
/// The same in another compute dtype, inside the plug-in: raises.
void queue_pointwise(const Pointwise& op, const KernelArgs& args, DType compute);

/// Copies `in`, converted, to `out`, which has the same sizes.
void queue_copy(const View& out, const View& in, KernelContext* context);
/// Returns `in` broadcast to the sizes of `out`.
void queue_broadcast(const View& out, const View& in, KernelContext* context);
void queue_zeros(const View& out, KernelContext* context);

}  // namespace rushlight::cuda
