#include "dispatch/float8.h"

#include "rushlight/ops/_to_copy.h"
#include "rushlight/schema.h"
#include "rushlight/value.h"
#include "tensor/promotion.h"

namespace rushlight {

// Note [Float8 tensors]
// Tensors of the float8 dtypes are stored, copied, indexed, viewed and converted; there is no arithmetic. Every such tensor
// carries Stage::Float8. An operator whose entry declares float8 (key `dtypes`) has no function at this stage, so that its
// base is called as for any dtype. All others have one, in the operator table: it raises an error, or, for the few pointwise
// operators and reductions that are declared, computes with float32 numbers, which hold those of float8 exactly. No kernels
// but conversions are compiled for these dtypes, and other tensors never reach this code: their mask has no such bit.

namespace {

const Tensor* float8_in(const Stack& stack) {
    for (const Value& v : stack) {
        if (auto* t = v.as<Tensor>(); t && t->defined() && is_float8(t->dtype())) return t;
        if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list)
                if (t.defined() && is_float8(t.dtype())) return &t;
    }
    return nullptr;
}

// The positions of the tensors that are made alike in dtype.
std::vector<size_t> operands_of(const Operator& op, const Stack& stack) {
    const SchemaText schema(op);
    std::vector<size_t> positions;
    for (size_t i = 0; i < stack.size(); ++i) {
        const auto* t = stack[i].as<Tensor>();
        const SchemaArgument& argument = schema.arguments[i];
        const bool is_out = argument.written && op.form == Form::Out;
        if (t && t->defined() && !is_out && argument.name != "condition") positions.push_back(i);
    }
    return positions;
}

// The dtype of the operands. Raises RuntimeError if there are several that would have to be promoted.
DType dtype_of(const Stack& stack, const std::vector<size_t>& operands) {
    std::vector<TensorOrScalar> given;
    for (size_t i : operands) given.emplace_back(*stack[i].as<Tensor>());
    return result_dtype(given);
}

}  // namespace

void compute_float8(const Operator& op, StageMask, Stack& stack) {
    const std::vector<size_t> operands = operands_of(op, stack);
    const DType dtype = op.broadcasts || op.float8_as_float ? dtype_of(stack, operands) : DType::Bool;
    for (size_t i : operands)
        if (auto& t = *stack[i].as<Tensor>(); op.float8_as_float && is_float8(t.dtype()))
            t = ops::_to_copy(t, DType::Float32);
    if (const Tensor* t = float8_in(stack))
        throw_not_implemented("%s: not defined for dtype %s\nhint: convert first, as in x.to(torch.float32)",
                              op.name, name(t->dtype()));
    call_boxed(op, stack);
    for (Value& v : stack)
        if (auto* t = v.as<Tensor>(); t && t->dtype() == DType::Float32) *t = ops::_to_copy(*t, dtype);
}

}  // namespace rushlight
