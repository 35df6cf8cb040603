// Operators on diagonals, composed of the view `diagonal` and its gradient.
#include <algorithm>

#include "bodies/diagonals.h"
#include "ops/fresh.h"
#include "ops/outputs.h"
#include "ops/views.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/diagonal_backward.h"
#include "rushlight/ops/fill_.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/scatter.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/sum.h"

namespace rushlight::composites {
namespace {

// Returns a copy of `input` in which the elements of `src` replace the elements of a view.
Tensor replaced(const char* op, const Tensor& input, const Tensor& src, const auto& view) {
    Tensor copy = ops::clone(input, "contiguous");
    {
        const Tensor part = view(copy);
        RL_CHECK(std::ranges::equal(part.sizes(), src.sizes()), throw_runtime,
                 "%s(src): needs shape %s, got %s", op, to_string(part.sizes()).c_str(),
                 to_string(src.sizes()).c_str());
        ops::copy_(part, src);
    }
    return fresh(std::move(copy));
}

}  // namespace

Tensor diag(const Tensor& input, int64_t diagonal) {
    if (input.dim() == 1) return diag_embed(input, diagonal, 0, 1);
    RL_CHECK(input.dim() == 2, throw_runtime, "diag(input): needs a vector or a matrix, got shape %s",
             to_string(input.sizes()).c_str());
    return ops::clone(ops::diagonal(input, diagonal, 0, 1), "contiguous");
}

Tensor diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
    RL_CHECK(input.dim() >= 1, throw_index,
             "diag_embed(input): needs at least 1 dimension, got a 0-d tensor");
    const int64_t n = input.dim() + 1;
    const int a = wrap_dim("diag_embed", dim1, n), b = wrap_dim("diag_embed", dim2, n);
    RL_CHECK(a != b, throw_runtime, "diag_embed(dim1, dim2): must differ, got %lld and %lld", (long long)dim1,
             (long long)dim2);
    std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end() - 1);
    int64_t length = 0;
    RL_CHECK(offset != INT64_MIN && !__builtin_add_overflow(input.size(-1), std::abs(offset), &length),
             throw_runtime, "diag_embed(offset): %lld is too large", (long long)offset);
    sizes.insert(sizes.begin() + std::min(a, b), length);
    sizes.insert(sizes.begin() + std::max(a, b), length);
    return ops::diagonal_backward(input, sizes, offset, a, b);
}

Tensor diagflat(const Tensor& input, int64_t offset) { return diag_embed(ops::flatten(input), offset, 0, 1); }

Tensor trace(const Tensor& input) {
    RL_CHECK(input.dim() == 2, throw_runtime, "trace(input): needs a matrix, got shape %s",
             to_string(input.sizes()).c_str());
    return ops::sum(ops::diagonal(input, 0, 0, 1));
}

Tensor fill_diagonal_(const Tensor& input, Scalar value, bool wrap) {
    RL_CHECK(input.dim() >= 2, throw_runtime,
             "fill_diagonal_(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    check_writable("fill_diagonal_", input);
    if (input.dim() > 2) {
        RL_CHECK(std::ranges::all_of(input.sizes(), [&](int64_t s) { return s == input.size(0); }),
                 throw_runtime,
                 "fill_diagonal_(input): all dimensions must have the same size if there are more than two, "
                 "got shape %s",
                 to_string(input.sizes()).c_str());
        Tensor main = ops::diagonal(input, 0, 0, 1);
        while (main.dim() > 1) main = ops::diagonal(main, 0, 0, -1);
        ops::fill_(main, value);
        return input;
    }
    const int64_t rows = input.size(0), columns = input.size(1);
    ops::fill_(ops::diagonal(input, 0, 0, 1), value);
    for (int64_t at = columns + 1; wrap && columns > 0 && at < rows; at += columns + 1)
        ops::fill_(ops::diagonal(ops::narrow(input, 0, at, rows - at), 0, 0, 1), value);
    return input;
}

Tensor as_strided_scatter(const Tensor& input, const Tensor& src, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
    RL_CHECK(std::ranges::equal(src.sizes(), size), throw_runtime,
             "as_strided_scatter(src): needs shape %s, got %s", to_string(size).c_str(),
             to_string(src.sizes()).c_str());
    // Finds the offsets of the elements by taking the same view of a tensor that holds the offset of each element.
    Tensor numbers = ops::arange(Scalar(input.numel()), std::nullopt, input.device());
    Tensor positions = ops::as_strided(numbers, size, stride, storage_offset.value_or(0));
    Tensor flat = ops::scatter(ops::flatten(input), 0, ops::flatten(positions), ops::flatten(src));
    return ops::reshape(flat, input.sizes());
}

Tensor diagonal_scatter(const Tensor& input, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
    return replaced("diagonal_scatter", input, src,
                    [&](const Tensor& t) { return ops::diagonal(t, offset, dim1, dim2); });
}
Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
    return replaced("select_scatter", input, src,
                    [&](const Tensor& t) { return ops::select(t, dim, index); });
}
Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
    return replaced("slice_scatter", input, src,
                    [&](const Tensor& t) { return ops::slice(t, dim, start, end, step); });
}

}  // namespace rushlight::composites
