// Conversion of sparse tensors to their values and back: Note [Sparse tensors].
#include "bodies/sparse.h"

#include <array>

#include "rushlight/batched.h"
#include "rushlight/ops/_searchsorted.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clamp.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/masked_select.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/ones.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sort.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros.h"
#include "sparse/parts.h"

namespace rushlight::composites {
namespace {

void check_pattern(const char* op, const Tensor& t) {
    RL_CHECK(is_sparse(t), throw_runtime, "%s: needs a sparse tensor, got layout torch.strided", op);
}

bool same_indices(const SparseParts& a, const SparseParts& b) {
    auto same = [](const Tensor& x, const Tensor& y) {
        if (!x.defined() || !y.defined()) return x.defined() == y.defined();
        return x.impl()->storage() == y.impl()->storage() && x.impl()->offset() == y.impl()->offset() &&
               std::ranges::equal(x.sizes(), y.sizes()) && std::ranges::equal(x.strides(), y.strides());
    };
    return a.layout == b.layout && same(a.indices, b.indices) && same(a.plain, b.plain) &&
           std::ranges::equal(a.values.sizes(), b.values.sizes());  // blocks must have the same size, too
}

// Returns one value for each coordinate of a pattern, in the shape of the pattern's values, which may be blocks.
Tensor as_values(const Tensor& numbers, const Tensor& pattern) {
    const SparseParts& parts = sparse_parts(pattern);
    return has_blocks(parts.layout) ? ops::reshape(numbers, parts.values.sizes()) : numbers;
}

}  // namespace

Tensor sparse_values(const Tensor& input) {
    check_pattern("_sparse_values(input)", input);
    return make_alias(sparse_parts(input).values);
}

Tensor with_sparse_values(const Tensor& values, const Tensor& pattern) {
    check_pattern("_with_sparse_values(pattern)", pattern);
    RL_CHECK(!is_batched(values), throw_not_implemented, "sparse tensors cannot be made inside vmap");
    SparseParts parts = sparse_parts(pattern);
    // A sparse gradient has values at the same positions.
    const Tensor plain = is_sparse(values) ? to_dense(values) : values;
    RL_CHECK(std::ranges::equal(plain.sizes(), parts.values.sizes()), throw_runtime,
             "_with_sparse_values(values): needs shape %s, got %s", to_string(parts.values.sizes()).c_str(),
             to_string(plain.sizes()).c_str());
    parts.values = make_alias(plain);
    return make_sparse(pattern.sizes(), std::move(parts));
}

Tensor sparse_values_backward(const Tensor& grad, const Tensor& pattern) {
    check_pattern("_sparse_values_backward(pattern)", pattern);
    const SparseParts& parts = sparse_parts(pattern);
    if (parts.layout != Layout::Coo || parts.coalesced || parts.indices.size(1) < 2)
        return ops::_with_sparse_values(grad, pattern);
    // The gradient of a position must be stored once: a sum with other gradients adds the values of equal positions.
    const sparse::Coordinates at = sparse::coordinates(pattern);
    const auto [positions, order] = ops::sort(at.positions(), -1, false);
    const int64_t rest = at.nnz() - 1;
    const Tensor differs = ops::ne(ops::narrow(positions, 0, 1, rest), ops::narrow(positions, 0, 0, rest));
    const Tensor first = ops::ones(std::array<int64_t, 1>{1}, DType::Bool, differs.device());
    const Tensor kept = ops::masked_select(order, ops::cat(std::array{first, differs}, 0));
    const Tensor plain = is_sparse(grad) ? to_dense(grad) : grad;
    return sparse::from_coordinates(
        {ops::index_select(at.indices, 1, kept), ops::index_select(plain, 0, kept), at.size, true});
}

Tensor sparse_mask_values(const Tensor& input, const Tensor& pattern) {
    check_pattern("_sparse_mask_values(pattern)", pattern);
    RL_CHECK(std::ranges::equal(input.sizes(), pattern.sizes()), throw_runtime,
             "sparse_mask(mask): needs the shape of the tensor, %s, got %s", to_string(input.sizes()).c_str(),
             to_string(pattern.sizes()).c_str());
    const sparse::Coordinates at = sparse::coordinates(pattern);
    if (!is_sparse(input)) {
        std::vector<int64_t> flat{at.num_positions()};
        flat.insert(flat.end(), at.size.begin() + at.sparse_dim(), at.size.end());
        return as_values(ops::index_select(ops::reshape(input, flat), 0, at.positions()), pattern);
    }
    if (same_indices(sparse_parts(input), sparse_parts(pattern))) return ops::_sparse_values(input);
    const sparse::Coordinates given = sparse::coalesced(input);
    RL_CHECK(given.sparse_dim() == at.sparse_dim(), throw_runtime,
             "sparse_mask(mask): must have %lld sparse dimensions, like the input, got %lld",
             (long long)given.sparse_dim(), (long long)at.sparse_dim());
    if (given.nnz() == 0)
        return as_values(ops::zeros(at.values.sizes(), input.dtype(), input.device()), pattern);
    const Tensor have = given.positions(), wanted = at.positions();
    const Tensor found = ops::clamp(ops::_searchsorted(have, wanted, Tensor(), false, false), std::nullopt,
                                    Scalar(given.nnz() - 1));
    std::vector<int64_t> column(static_cast<size_t>(given.values.dim()), 1);
    column[0] = at.nnz();
    const Tensor there = ops::reshape(ops::eq(ops::index_select(have, 0, found), wanted), column);
    return as_values(ops::where(there, ops::index_select(given.values, 0, found), Scalar(0)), pattern);
}

Tensor sparse_mask_backward(const Tensor& grad, const Tensor& pattern, const Tensor& input) {
    const Tensor result = ops::_with_sparse_values(grad, pattern);
    return is_sparse(input) ? result : to_dense(result);
}

}  // namespace rushlight::composites
