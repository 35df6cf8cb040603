// Calls of pointwise operators.
#pragma once

#include "cuda/loops.h"
#include "rushlight/backend.h"

namespace rushlight::cuda {

struct Pointwise {
    enum class Result : uint8_t { Compute, Bool, Real };  // Real: the dtype of the parts, for complex numbers

    const char* name;
    const LoopTable* loops;
    uint8_t num_inputs;
    uint8_t bool_inputs;  // bit i: input i is a condition
    uint8_t num_params;
    Result result;
};

/// Runs the kernel of an operator, as core calls it.
BackendStatus run_pointwise(const Pointwise& op, const KernelArgs& args);
/// Queues the kernel in another compute dtype, for calls inside the plug-in. Raises Failure.
void queue_pointwise(const Pointwise& op, const KernelArgs& args, DType compute);

/// Copies `in` to `out` with conversion. Both have the same sizes.
void queue_copy(const View& out, const View& in, KernelContext* context);
/// Copies `in` to `out` with broadcasting.
void queue_broadcast(const View& out, const View& in, KernelContext* context);
void queue_zeros(const View& out, KernelContext* context);

}  // namespace rushlight::cuda
