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
/// Enqueues the kernel of an operator with a given compute dtype, for calls inside the plug-in. Raises Failure.
void queue_pointwise(const Pointwise& op, const KernelArgs& args, DType compute);

/// Copies `in` to `out`, which has the same sizes, and converts the elements to the dtype of `out`.
void queue_copy(const View& out, const View& in, KernelContext* context);
/// Copies `in`, broadcast to the sizes of `out`, to `out`.
void queue_broadcast(const View& out, const View& in, KernelContext* context);
void queue_zeros(const View& out, KernelContext* context);

}  // namespace rushlight::cuda
