// Rules of indexing.
#include <algorithm>
#include <array>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/broadcast_tensors.h"
#include "rushlight/ops/embedding.h"
#include "rushlight/ops/embedding_dense_backward.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/ge.h"
#include "rushlight/ops/index.h"
#include "rushlight/ops/index_put_.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/scatter_.h"
#include "rushlight/ops/scatter_add_.h"
#include "rushlight/ops/searchsorted.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"

namespace rushlight::autograd::batching {
namespace {

// Returns the indices of the examples, in the shape (B, 1, ..., 1) with `rank` ones.
Tensor example_numbers(const Call& c, int64_t rank, Device device) {
    Tensor numbers = ops::arange(Scalar(c.size()), DType::Int64, device);
    std::vector<int64_t> sizes(static_cast<size_t>(rank + 1), 1);
    sizes[0] = c.size();
    return ops::view(numbers, sizes);
}

// Indexing of one example, in a form in which the indexed dimensions come first.
struct Indexing {
    std::vector<int64_t> indexed;  // dimensions of an example that have an index
    std::vector<int64_t> others;
    std::vector<Tensor> indices;  // one for each of `indexed`, as passed to the operator
    int64_t rank = 0;  // number of dimensions of an example
    int64_t index_rank = 0;  // number of dimensions of the broadcast indices
    int64_t in_front = 0;  // how many of `others` come before the indices in the result
    bool rows = false;  // whether an index is batched

    Indexing(const Call& c, int64_t rank, const std::vector<Tensor>& given) : rank(rank) {
        int64_t d = 0;
        for (const Tensor& t : given) {
            if (!t.defined()) {
                ++d;
                continue;
            }
            if (t.dtype() == DType::Bool || t.dtype() == DType::UInt8) {
                if (c.is_batched(t)) c.fail_shape_depends_on_values();
                const Tensor positions = ops::nonzero(t);
                for (int64_t k = 0; k < t.dim(); ++k) {
                    indexed.push_back(d++);
                    indices.push_back(ops::select(positions, 1, k));
                }
                continue;
            }
            indexed.push_back(d++);
            indices.push_back(t);
            rows |= c.is_batched(t);
        }
        for (const Tensor& t : indices) index_rank = std::max(index_rank, t.dim());
        for (int64_t k = 0; k < rank; ++k)
            if (std::find(indexed.begin(), indexed.end(), k) == indexed.end()) others.push_back(k);
        const bool adjacent =
            indexed.empty() || indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
        if (adjacent && !indexed.empty()) in_front = indexed.front();
    }

    // Returns a view of `t` with the dimensions (B, indexed..., others...).
    Tensor indexed_first(const Tensor& t, bool has_rows) const {
        std::vector<int64_t> order;
        if (has_rows) order.push_back(0);
        for (int64_t d : indexed) order.push_back(d + has_rows);
        for (int64_t d : others) order.push_back(d + has_rows);
        return ops::permute(t, order);
    }
    // Returns the indices for a tensor of (B, indexed..., others...), or, without rows, of (indexed..., others...).
    std::vector<Tensor> lowered(const Call& c, bool has_rows, Device device) const {
        std::vector<Tensor> list;
        if (has_rows) list.push_back(rows ? example_numbers(c, index_rank, device) : Tensor());
        for (const Tensor& t : indices)
            list.push_back(c.is_batched(t) ? pad_rank(c.lower(t), index_rank) : t);
        return list;
    }
    // in_order() moves the dimensions from (B, index..., others...) to the order of the result; out_of_order() moves
    // them back.
    Tensor in_order(const Tensor& t) const { return move(t, 1, 1 + in_front); }
    Tensor out_of_order(const Tensor& t) const { return move(t, 1 + in_front, 1); }

  private:
    Tensor move(const Tensor& t, int64_t from, int64_t to) const {
        if (from == to || index_rank == 0) return t;
        std::vector<int64_t> source, destination;
        for (int64_t k = 0; k < index_rank; ++k) {
            source.push_back(from + k);
            destination.push_back(to + k);
        }
        return ops::movedim(t, source, destination);
    }
};

}  // namespace

namespace rules {

void index(Call& c) {
    const Tensor input = c.tensor(0);
    const Indexing how(c, input.dim(), c.get<std::vector<Tensor>>(1));
    const bool rows = c.is_batched(0);
    const Tensor first = how.indexed_first(c.lower(input), rows);
    c.give(how.in_order(ops::index(first, how.lowered(c, rows, input.device()))));
}

// index_put_(input, indices, values, accumulate)
void index_put(Call& c) {
    const Tensor input = c.tensor(0), values = c.tensor(2);
    RL_CHECK(c.is_batched(0), throw_runtime,
             "index_put_: inside vmap each example would write its own values into the same tensor, because "
             "the tensor is not batched\n"
             "hint: use index_put, or create the tensor from a batched tensor (zeros_like, new_zeros)");
    const Indexing how(c, input.dim(), c.get<std::vector<Tensor>>(1));
    const Tensor first = how.indexed_first(c.lower(input), true);
    const auto result_rank = how.index_rank + static_cast<int64_t>(how.others.size());
    RL_CHECK(values.dim() <= result_rank, throw_runtime,
             "index_put_(values): shape %s does not broadcast to the shape of the indexed elements",
             to_string(values.sizes()).c_str());
    const Tensor put = how.out_of_order(pad_rank(c.expanded(values), result_rank));
    ops::index_put_(first, how.lowered(c, true, input.device()), put, c.get<bool>(3));
    c.wrap();
}

// index_backward(grad, input_sizes, indices)
void index_backward(Call& c) {
    const Tensor grad = c.tensor(0);
    const std::vector<Tensor> indices = c.get<std::vector<Tensor>>(2);
    BatchLevels levels;  // in any of which the gradient or an index is batched
    levels.add(grad);
    for (const Tensor& t : indices) levels.add(t);
    const Tensor zeros = batched_zeros(c.ints(1), grad.dtype(), grad.device(), levels);
    c.give_as_is(ops::index_put_(zeros, indices, grad, true));
}

void index_select(Call& c) {
    const Tensor input = c.tensor(0), index = c.tensor(2);
    const int64_t dim = wrap_dim("index_select", c.integer(1), input.dim());
    RL_CHECK(index.dim() <= 1, throw_index, "index_select(index): must have one dimension, got shape %s",
             to_string(index.sizes()).c_str());
    if (!c.is_batched(index)) {
        Tensor value = c.lower(input);
        if (input.dim() == 0) value = ops::unsqueeze(value, 1);
        value = ops::index_select(value, dim + 1, index);
        return c.give(input.dim() == 0 ? ops::reshape(value, std::array<int64_t, 1>{c.size()}) : value);
    }
    if (input.dim() == 0) return loop(c);
    Tensor numbers = c.lower(index);
    if (index.dim() == 0) numbers = ops::unsqueeze(numbers, 1);
    std::vector<int64_t> view(static_cast<size_t>(input.dim() + 1), 1), sizes = input.shape();
    view[0] = c.size();
    view[static_cast<size_t>(dim) + 1] = numbers.sizes()[1];
    sizes[static_cast<size_t>(dim)] = numbers.sizes()[1];
    sizes.insert(sizes.begin(), c.size());
    c.give(ops::gather(c.expanded(input), dim + 1, ops::expand(ops::reshape(numbers, view), sizes)));
}

// In-place operators along one dimension: (input, dim, index, ...). If the index is batched, they run example by
// example.
void along_index(Call& c) {
    const int64_t rank = c.rank(0);
    if (rank == 0 || !c.is_batched(0)) return loop(c);
    const std::string_view name = c.op.name;
    const bool has_source = c.row.arguments[3] == 't';
    if (name == "index_copy_" && rank == 1 && c.rank(3) == 0)  // index_copy_ takes one number for a vector
        c.stack[3] = ops::unsqueeze(c.tensor(3), 0);
    if (c.is_batched(2) && c.rank(2) == 1 && has_source) {
        // Computes the same operator by scatter, with an index for each element of the source. Scatter would ignore
        // surplus elements.
        const int64_t dim = wrap_dim(c.op.name, c.integer(1), rank) + 1;
        std::vector<int64_t> slices = c.tensor(0).shape();
        slices[static_cast<size_t>(dim) - 1] = c.tensor(2).numel();
        if (c.tensor(3).shape() != slices) return loop(c);
        const Tensor target = c.lower(c.tensor(0)), source = c.expanded(c.tensor(3));
        std::vector<int64_t> sizes(static_cast<size_t>(rank) + 1, 1);
        sizes[0] = c.size();
        sizes[static_cast<size_t>(dim)] = c.tensor(2).numel();
        const Tensor index = ops::expand(ops::view(c.lower(c.tensor(2)), sizes), source.sizes());
        if (name == "index_add_") {
            const Scalar alpha = c.get<Scalar>(4);
            ops::scatter_add_(target, dim, index, alpha.equals(1) ? source : ops::mul(source, alpha));
        } else {
            ops::scatter_(target, dim, index, source);
        }
        return c.wrap();
    }
    if (c.is_batched(2)) return loop(c);
    const Tensor index = c.tensor(2);
    c.stack[1] = wrap_dim(c.op.name, c.integer(1), rank) + 1;
    c.together();
    c.stack[2] = index;
    c.finish();
}

void take(Call& c) {
    const Tensor input = c.tensor(0), index = c.tensor(1);
    if (!c.is_batched(0)) return front(c);
    const Tensor flat = ops::reshape(c.lower(input), std::array<int64_t, 2>{c.size(), input.numel()});
    if (!c.is_batched(1)) {
        const std::vector<Tensor> at{Tensor(), index};
        return c.give(ops::index(flat, at));
    }
    const std::vector<Tensor> at{example_numbers(c, index.dim(), input.device()), c.lower(index)};
    c.give(ops::index(flat, at));
}

// put_(input, index, source, accumulate)
void put(Call& c) {
    const Tensor input = c.tensor(0), index = c.tensor(1);
    if (c.mixes_dtypes() || !c.is_batched(0) || !c.lower(input).is_contiguous()) return loop(c);
    const Tensor flat = ops::view(c.lower(input), std::array<int64_t, 2>{c.size(), input.numel()});
    const std::array<int64_t, 2> row{c.size(), -1};
    std::vector<Tensor> at{Tensor(), ops::reshape(index, kInts<-1>)};
    if (c.is_batched(1)) at = {example_numbers(c, 1, input.device()), ops::reshape(c.lower(index), row)};
    if (index.numel() > 0)
        ops::index_put_(flat, at, ops::reshape(c.expanded(c.tensor(2)), row), c.get<bool>(3));
    c.wrap();
}

// masked_select(input, mask). The mask must be the same for all examples.
void masked_select(Call& c) {
    if (c.is_batched(1)) c.fail_shape_depends_on_values();
    if (c.rank(0) == 0 && c.rank(1) == 0) return loop(c);
    const std::vector<Tensor> both{c.tensor(0), c.tensor(1)};
    const std::vector<Tensor> alike = ops::broadcast_tensors(both);
    const std::vector<Tensor> at{alike[1]};
    c.give_as_is(ops::index(alike[0], at));
}

// masked_scatter_(input, mask, source). The mask must be the same for all examples.
void masked_scatter(Call& c) {
    const Tensor input = c.tensor(0), mask = c.tensor(1), source = c.tensor(2);
    const int64_t rank = input.dim();
    if (!c.is_batched(0) || c.is_batched(1) || rank == 0 || mask.dim() > rank) return loop(c);
    for (int64_t d = 1; d <= mask.dim(); ++d)
        if (mask.size(-d) != 1 && mask.size(-d) != input.size(-d)) return loop(c);
    const Tensor positions = ops::nonzero(ops::expand(mask, input.sizes()));
    const int64_t count = positions.size(0);
    if (count > source.numel()) return loop(c);
    std::vector<Tensor> at{Tensor()};
    for (int64_t d = 0; d < rank; ++d) at.push_back(ops::select(positions, 1, d));
    const Tensor rows = ops::reshape(c.expanded(source), std::array<int64_t, 2>{c.size(), source.numel()});
    ops::index_put_(c.lower(input), at, ops::narrow(rows, 1, 0, count), false);
    c.wrap();
}

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
void embedding(Call& c) {
    if (!c.is_batched(0)) return front(c);
    if (c.integer(2) >= 0 || c.get<bool>(3)) return loop(c);
    RL_CHECK(c.rank(0) == 2, throw_runtime, "embedding(weight): needs 2 dimensions, got shape %s",
             to_string(c.tensor(0).sizes()).c_str());
    // Join the tables of all examples into one table. An index that is out of range for its table must not read a row
    // of another table.
    const int64_t rows = c.tensor(0).sizes()[0];
    const Tensor indices = c.expanded(c.tensor(1));
    const Tensor offsets = ops::mul(example_numbers(c, indices.dim() - 1, indices.device()), Scalar(rows));
    const Tensor beyond = ops::logical_or(ops::lt(indices, Scalar(0)), ops::ge(indices, Scalar(rows)));
    const Tensor positions = ops::masked_fill(ops::add(indices, offsets, Scalar(1)), beyond, Scalar(-1));
    c.give(ops::embedding(fold(c.lower(c.tensor(0))), positions, -1, false, false));
}

// embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
void embedding_backward(Call& c) {
    if (c.integer(3) >= 0) return loop(c);
    const int64_t rows = c.integer(2);
    const Tensor grad = c.expanded(c.tensor(0)), indices = c.expanded(c.tensor(1));
    const Tensor offsets = ops::mul(example_numbers(c, indices.dim() - 1, indices.device()), Scalar(rows));
    c.give(unfold(ops::embedding_dense_backward(grad, ops::add(indices, offsets, Scalar(1)), rows * c.size(),
                                                -1, c.get<bool>(4)),
                  c.size(), rows));
}

// searchsorted(sorted_sequence, input, ...)
void searchsorted(Call& c) {
    const bool sorter = !c.stack[5].is_none();
    const int64_t rank = c.rank(0);
    if (!c.is_batched(0) && !sorter && rank == 1) return front(c);
    if (rank != 1) return leading(c);
    // Each example has one sequence and values of any shape, which are flattened to a row.
    const std::vector<int64_t> shape = c.tensor(1).shape();
    c.together();
    c.stack[1] = ops::reshape(c.get<Tensor>(1), std::array<int64_t, 2>{c.size(), -1});
    c.run();
    std::vector<int64_t> sizes{c.size()};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    c.stack[0] = ops::view(c.get<Tensor>(0), sizes);
    c.wrap();
}

// Operators of the form (input, table), with a table that all examples share.
void by_shared_table(Call& c) {
    for (size_t i = 1; i < c.stack.size(); ++i)
        if (c.is_batched(i)) return loop(c);
    front(c);
}

void matrices_alone(Call& c) {
    for (size_t i = 1; i < c.stack.size(); ++i)
        if (c.is_batched(i)) return loop(c);
    matrices(c);
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
