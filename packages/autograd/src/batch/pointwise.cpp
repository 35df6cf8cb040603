// Rules of operators that broadcast and promote their operands.
#include <algorithm>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/expand.h"
#include "rushlight/promotion.h"

namespace rushlight::autograd::batching {
namespace {

// In type promotion, a tensor without dimensions has less weight than a tensor with dimensions. But if it is batched,
// its value has the dimension of the examples. So operands are converted to their common dtype beforehand if an
// operand has no dimensions. Integers are not converted if the operator later converts them to the default dtype: the
// common dtype may not represent them.
void agree_on_dtype(Call& c) {
    bool without_dims = false;
    std::vector<TensorOrScalar> operands;
    for (size_t i = 0; i < c.stack.size(); ++i) {
        if (c.row.arguments[i] != 't' || !c.is_tensor(i)) continue;
        operands.emplace_back(c.tensor(i));
        without_dims |= c.tensor(i).dim() == 0;
    }
    if (!without_dims) return;
    const DType joint = result_dtype(operands);
    if (c.row.floats && !is_differentiable(joint)) return;
    for (size_t i = c.op.form == Form::InPlace ? 1 : 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 't' && c.is_tensor(i) && c.tensor(i).dtype() != joint)
            c.stack[i] = ops::_to_copy(c.tensor(i), joint, std::nullopt);
}

}  // namespace

namespace rules {

void pointwise(Call& c) {
    agree_on_dtype(c);
    int64_t rank = 0;
    uint64_t rows = 0;
    for (size_t i = 0; i < c.stack.size(); ++i) {
        const auto* t = c.stack[i].as<Tensor>();
        if (!t) continue;
        rank = std::max(rank, t->dim());
        if (c.is_batched(*t)) rows |= uint64_t{1} << i;
    }
    RL_CHECK(c.op.form != Form::InPlace || !(rows & 1) || c.rank(0) == rank, throw_runtime,
             "%s: the tensor to modify in place has %lld dimensions, but another operand has %lld", c.op.name,
             (long long)c.rank(0), (long long)rank);
    c.unwrap();
    for (size_t i = 0; rows >> i; ++i)
        if (rows >> i & 1) c.stack[i] = pad_rank(c.get<Tensor>(i), rank);
    c.finish();
}

// copy_(input, other) and fill_(input, value)
void copy_in_place(Call& c) {
    const bool rows = c.is_batched(1);
    const int64_t rank = c.rank(0);
    RL_CHECK(c.rank(1) <= rank, throw_runtime, "%s: shape %s does not broadcast to %s", c.op.name,
             to_string(c.tensor(1).sizes()).c_str(), to_string(c.tensor(0).sizes()).c_str());
    c.unwrap();
    if (rows) {
        c.stack[1] = pad_rank(c.get<Tensor>(1), rank);
        static const Operator* copy = find_operator("copy_");
        c.stack.resize(2);
        c.stack.emplace_back(false);
        c.run(*copy);
        return c.wrap();
    }
    c.finish();
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
