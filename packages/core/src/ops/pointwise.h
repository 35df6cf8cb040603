// Pointwise operators. One engine performs promotion, broadcasting, allocation of outputs and checks of overlap for all of
// them. An operator is a table of loops.
#pragma once

#include "cpu/loop_table.h"
#include "rushlight/dispatch.h"
#include "rushlight/promotion.h"

namespace rushlight {

struct PointwiseDesc {
    // CommonFloat: integers become the default dtype. CommonNumber: bools become int64.
    enum class Compute : uint8_t { Common, CommonFloat, CommonNumber };
    enum class Result : uint8_t { Compute, Bool, Real };  // Real: the dtype of the parts, for complex numbers

    const char* name;
    const char* const* arg_names;
    uint8_t num_inputs;
    uint8_t bool_inputs;  // bit i: input i is a condition, which does not take part in promotion
    uint8_t num_params;
    uint8_t castable_params;  // bit i: parameter i must have a category that fits the compute dtype
    bool wraps;  // integers beyond the dtype's range wrap around, as in arithmetic
    Compute compute;
    Result result;
    const LoopTable& (*loops)();
    KernelSlots* kernels;
};

Tensor pointwise(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params);
/// Runs the CPU's kernel on views of one shape. It is called like a kernel of a device.
void pointwise_views(const PointwiseDesc& desc, const KernelArgs& k);
/// Writes the result to `out` and returns `out`. If `form` is InPlace, `out` must have the broadcast shape. If `form`
/// is Out, `out` is resized to this shape.
Tensor pointwise_into(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params,
                      const Tensor& out, Form form);

}  // namespace rushlight
