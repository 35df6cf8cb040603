#include "dispatch/float8.h"

#include "rushlight/ops/_to_copy.h"
#include "rushlight/schema.h"
#include "rushlight/value.h"
#include "tensor/promotion.h"

namespace rushlight {

// Note [Float8 tensors]
// Tensors of the float8 dtypes can be stored, copied, indexed, viewed and converted. There is no arithmetic. Every float8
// tensor has the bit Stage::Float8. If the entry of an operator declares float8 (key `dtypes`), the operator has no function
// at this stage, and its base is called as for other dtypes. All other operators have a function at this stage, which is
// set in the operator table and raises an error. Pointwise operators and reductions that declare float8 have one, too: it
// converts float8 to float32, which is exact, and the result back. Conversions are the only kernels that are compiled for
// these dtypes. Tensors of other dtypes never reach this code, because they lack the bit.

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

// Returns the positions of the tensors whose dtypes are promoted to a common dtype.
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

// Returns the common dtype of the operands. Raises RuntimeError if float8 would have to be promoted.
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
