// Pointwise operators: one engine does promotion, broadcasting, output and overlap; an operator is a table of loops.
#pragma once

#include "cpu/loop_table.h"
#include "rushlight/dispatch.h"
#include "rushlight/promotion.h"

namespace rushlight {

struct PointwiseDesc {
    // CommonFloat: integers become the default dtype. CommonNumber: bools become int64.
    enum class Compute : uint8_t { Common, CommonFloat, CommonNumber };
    enum class Result : uint8_t { Compute, Bool, Real };  // Real: of complex numbers their parts' dtype

    const char* name;
    const char* const* arg_names;
    uint8_t num_inputs;
    uint8_t bool_inputs;  // bit i: input i is a condition, outside of promotion
    uint8_t num_params;
    uint8_t castable_params;  // bit i: parameter i must fit the compute dtype's category
    bool wraps;  // integers beyond the dtype's range are taken modulo it, as in arithmetic
    Compute compute;
    Result result;
    const LoopTable& (*loops)();
    KernelSlots* kernels;
};

Tensor pointwise(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params);
/// The CPU's kernel over views of one shape, as a device's kernel is called.
void pointwise_views(const PointwiseDesc& desc, const KernelArgs& k);
/// Writes the result to `out` and returns it: with InPlace it must have the broadcast shape, with Out it is resized.
Tensor pointwise_into(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params,
                      const Tensor& out, Form form);

}  // namespace rushlight
