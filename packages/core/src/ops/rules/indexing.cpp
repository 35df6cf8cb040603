// Reads and writes by index tensors. The shapes follow NumPy's indexing.
#include "bodies/indexing.h"
#include "ops/broadcasting.h"

namespace rushlight::rules {
namespace {

// Broadcasts the shapes of indices. Raises IndexError if they do not broadcast.
std::vector<int64_t> joined(const char* op, IntList a, IntList b) {
    const size_t n = std::min(a.size(), b.size());
    for (size_t i = 1; i <= n; ++i) {
        const int64_t x = a[a.size() - i], y = b[b.size() - i];
        RL_CHECK(x == y || x == 1 || y == 1, throw_index,
                 "%s(indices): the shapes %s and %s of indices do not broadcast", op, to_string(a).c_str(),
                 to_string(b).c_str());
    }
    return broadcast_shapes(op, "indices", a, "indices", b);
}

// If the indices are adjacent, their shape replaces the indexed dimensions in place. Otherwise it comes first.
std::vector<int64_t> indexed_shape(const char* op, IntList sizes, TensorList indices) {
    RL_CHECK(indices.size() <= sizes.size(), throw_index,
             "%s: got %zu indices, too many for a tensor of shape %s", op, indices.size(),
             to_string(sizes).c_str());
    size_t first = sizes.size(), last = 0, count = 0;
    std::vector<int64_t> joint;
    for (size_t d = 0; d < indices.size(); ++d) {
        const Tensor& t = indices[d];
        if (!t.defined()) continue;
        RL_CHECK(is_integral(t.dtype()), throw_index,
                 "%s: tensors used as indices must be integer or bool, got %s", op, name(t.dtype()));
        joint = count++ == 0 ? t.shape() : joined(op, joint, t.sizes());
        first = std::min(first, d);
        last = d;
    }
    const size_t split = count > 0 && last - first + 1 == count ? first : 0;
    std::vector<int64_t> shape(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(split));
    shape.insert(shape.end(), joint.begin(), joint.end());
    for (size_t d = split; d < sizes.size(); ++d)
        if (d >= indices.size() || !indices[d].defined()) shape.push_back(sizes[d]);
    RL_CHECK(shape.size() <= kMaxDims, throw_index,
             "%s: the result would have %zu dimensions, more than a tensor can have", op, shape.size());
    return shape;
}

}  // namespace

Outputs _index(const Tensor& input, TensorList indices) {
    Outputs outs;
    outs.add(indexed_shape("index", input.sizes(), indices), input.dtype(), input.device());
    return outs;
}

Outputs index_backward(const Tensor& grad, IntList input_sizes, TensorList indices) {
    const auto shape = indexed_shape("index_backward", input_sizes, indices);
    RL_CHECK(std::ranges::equal(grad.sizes(), shape), throw_runtime,
             "index_backward(grad): needs the indexed shape %s, got %s", to_string(shape).c_str(),
             to_string(grad.sizes()).c_str());
    Outputs outs;
    outs.add(input_sizes, grad.dtype(), grad.device());
    return outs;
}

Outputs _index_put_(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    const char* op = "index_put_";
    RL_CHECK(!accumulate || !is_float8(input.dtype()), throw_not_implemented,
             "%s(accumulate): sums are not defined for dtype %s", op, name(input.dtype()));
    RL_CHECK(values.dtype() == input.dtype() || values.dim() == 0 || can_cast(values.dtype(), input.dtype()),
             throw_runtime,
             "index_put_(values): values of dtype %s cannot be written to a tensor of dtype %s",
             name(values.dtype()), name(input.dtype()));
    const auto shape = indexed_shape(op, input.sizes(), indices);
    IntList given = values.sizes();
    while (given.size() > shape.size() && given.front() == 1) given = given.subspan(1);
    RL_CHECK(broadcast_shapes(op, "input[indices]", shape, "values", given) == shape, throw_runtime,
             "%s(values): shape %s does not broadcast to the indexed shape %s", op,
             to_string(values.sizes()).c_str(), to_string(shape).c_str());
    return {};
}

}  // namespace rushlight::rules
