// Pointwise operators: one engine does promotion, broadcasting, output and overlap; an operator is a table of loops.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Runs over `n` elements; outputs first, then inputs; strides in bytes. All inputs have the loop's compute dtype, but
/// for those that a functor takes as bool.
using LoopFn = void (*)(char* const* data, const int64_t* strides, int64_t n, const Scalar* params);

/// The loops of one operator by compute dtype; null where it is not defined.
struct LoopTable {
    LoopFn loop[kNumDTypes];
};

inline constexpr int kMaxOperands = 6;

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
/// Into `out`: InPlace must have the broadcast shape, Out is resized to it. Returns `out`.
Tensor pointwise_into(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params,
                      const Tensor& out, Form form);

/// Writes `source`, converted and broadcast, over `target`.
RL_API void copy_into(const Tensor& target, const Tensor& source);

/// A number as an element of dtype `t`; floats lose their fraction and negative integers wrap around in unsigned dtypes.
/// RuntimeError where it lies beyond the range, is no number of an integer dtype, or is complex and `t` is not.
Scalar element_of(const char* op, const char* argument, Scalar value, DType t);
/// The value of a tensor of one element on the CPU.
Scalar value_of(const Tensor& t);

/// The dtype of an expression over tensors and numbers: tensors with dimensions come before 0-d tensors, and those
/// before numbers, unless the later has a higher category (the rule of PyTorch and of the array API standard).
RL_API DType result_dtype(std::span<const TensorOrScalar> operands);

/// Shapes joined by broadcasting; the error names the operator and both shapes.
std::vector<int64_t> broadcast_shapes(const char* op, const char* first_name, IntList first,
                                      const char* second_name, IntList second);

/// Makes `out` of an out= call have this shape and checks that `result` may be cast to its dtype.
void prepare_out(const char* op, const Tensor& out, IntList sizes, DType result);
/// Raises for a read-only tensor and for one whose elements share memory.
void check_writable(const char* op, const Tensor& t);

}  // namespace rushlight
