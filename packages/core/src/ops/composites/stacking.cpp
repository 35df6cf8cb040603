// Joins tensors of different numbers of dimensions, and computes products of sets.
#include <algorithm>
#include <cmath>

#include "bodies/stacking.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/unsqueeze.h"
#include "tensor/promotion.h"

namespace rushlight::composites {
namespace {

template <class Function>
std::vector<Tensor> each(TensorList tensors, Function function) {
    std::vector<Tensor> results;
    results.reserve(tensors.size());
    for (const Tensor& t : tensors) results.push_back(function(t));
    return results;
}

void check_some(const char* op, TensorList tensors) {
    RL_CHECK(!tensors.empty(), throw_runtime, "%s(tensors): needs at least one tensor, got none", op);
}

Tensor column(const Tensor& t) {
    if (t.dim() > 1) return t;
    const int64_t sizes[] = {t.numel(), 1};
    return ops::reshape(t, sizes);
}

}  // namespace

Tensor atleast_1d(const Tensor& input) { return input.dim() == 0 ? ops::unsqueeze(input, 0) : input; }
Tensor atleast_2d(const Tensor& input) {
    return input.dim() < 2 ? ops::unsqueeze(atleast_1d(input), 0) : input;
}
Tensor atleast_3d(const Tensor& input) {
    return input.dim() < 3 ? ops::unsqueeze(atleast_2d(input), -1) : input;
}
std::vector<Tensor> atleast_1d_list(TensorList tensors) {
    return each(tensors, [](const Tensor& t) { return atleast_1d(t); });
}
std::vector<Tensor> atleast_2d_list(TensorList tensors) {
    return each(tensors, [](const Tensor& t) { return atleast_2d(t); });
}
std::vector<Tensor> atleast_3d_list(TensorList tensors) {
    return each(tensors, [](const Tensor& t) { return atleast_3d(t); });
}

Tensor hstack(TensorList tensors) {
    check_some("hstack", tensors);
    auto parts = atleast_1d_list(tensors);
    return ops::cat(parts, parts[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
    check_some("vstack", tensors);
    return ops::cat(atleast_2d_list(tensors), 0);
}
Tensor dstack(TensorList tensors) {
    check_some("dstack", tensors);
    return ops::cat(atleast_3d_list(tensors), 2);
}
Tensor column_stack(TensorList tensors) {
    check_some("column_stack", tensors);
    return ops::cat(each(tensors, column), 1);
}

Tensor block_diag(TensorList tensors) {
    if (tensors.empty()) return make_tensor(kInts<1, 0>, default_dtype());
    int64_t width = 0, before = 0;
    const DType dtype = result_dtype(std::vector<TensorOrScalar>(tensors.begin(), tensors.end()));
    for (const Tensor& t : tensors) {
        RL_CHECK(t.dim() <= 2, throw_runtime,
                 "block_diag(tensors): needs tensors of at most 2 dimensions, got one of shape %s",
                 to_string(t.sizes()).c_str());
        width += t.dim() == 0 ? 1 : t.size(-1);
    }
    std::vector<Tensor> rows;
    for (const Tensor& t : tensors) {
        Tensor block = atleast_2d(t);
        if (block.dtype() != dtype) block = ops::_to_copy(block, dtype);
        const int64_t left[] = {block.size(0), before},
                      right[] = {block.size(0), width - before - block.size(1)};
        const Tensor parts[] = {ops::new_zeros(block, left, dtype), block,
                                ops::new_zeros(block, right, dtype)};
        rows.push_back(ops::cat(parts, 1));
        before += block.size(1);
    }
    return ops::cat(rows, 0);
}

std::vector<Tensor> meshgrid(TensorList tensors, std::optional<std::string_view> indexing) {
    check_some("meshgrid", tensors);
    const bool xy = indexing && *indexing == "xy";
    RL_CHECK(!indexing || xy || *indexing == "ij", throw_runtime,
             "meshgrid(indexing): must be 'ij' or 'xy', got '%.*s'",
             indexing ? static_cast<int>(indexing->size()) : 0, indexing ? indexing->data() : "");
    std::vector<int64_t> shape;
    for (const Tensor& t : tensors) {
        RL_CHECK(t.dim() <= 1, throw_runtime, "meshgrid(tensors): needs numbers or vectors, got shape %s",
                 to_string(t.sizes()).c_str());
        RL_CHECK(t.dtype() == tensors[0].dtype(), throw_runtime,
                 "meshgrid(tensors): must have the same dtype, got %s and %s", name(tensors[0].dtype()),
                 name(t.dtype()));
        shape.push_back(t.numel());
    }
    auto position = [&](size_t i) { return xy && tensors.size() > 1 && i < 2 ? 1 - i : i; };
    if (xy && tensors.size() > 1) std::swap(shape[0], shape[1]);
    std::vector<Tensor> grids;
    for (size_t i = 0; i < tensors.size(); ++i) {
        std::vector<int64_t> along(shape.size(), 1);
        along[position(i)] = tensors[i].numel();
        grids.push_back(ops::expand(ops::reshape(tensors[i], along), shape, false));
    }
    return grids;
}

Tensor cartesian_prod(TensorList tensors) {
    check_some("cartesian_prod", tensors);
    for (const Tensor& t : tensors)
        RL_CHECK(t.dim() == 1, throw_runtime, "cartesian_prod(tensors): needs vectors, got shape %s",
                 to_string(t.sizes()).c_str());
    if (tensors.size() == 1) return tensors[0];
    auto grids = meshgrid(tensors, "ij");
    return ops::stack(each(grids, [](const Tensor& g) { return ops::flatten(g); }), 1);
}

Tensor combinations(const Tensor& input, int64_t r, bool with_replacement) {
    RL_CHECK(input.dim() == 1, throw_runtime, "combinations(input): needs a vector, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(r >= 0, throw_runtime, "combinations(r): must not be negative, got %lld", (long long)r);
    if (r == 0) return ops::new_zeros(input, kInts<0>);
    const int64_t n = input.numel(), step = with_replacement ? 0 : 1;
    const bool any = n > 0 && (with_replacement || r <= n);
    // Choosing r elements from m makes m! / (r! (m - r)!) rows.
    double rows = any ? 1 : 0;
    const int64_t more = with_replacement ? n - 1 : n - r;  // m - r
    for (int64_t i = 1; any && i <= std::min(r, more) && rows < 1e18; ++i)
        rows =
            rows * (static_cast<double>(std::max(r, more)) + static_cast<double>(i)) / static_cast<double>(i);
    RL_CHECK(rows * static_cast<double>(r) < 1e17, throw_runtime,
             "combinations(input, r): choosing %lld of %lld elements gives too many rows", (long long)r,
             (long long)n);
    const auto count = static_cast<int64_t>(std::llround(rows));
    const int64_t sizes[] = {count, r}, total = count * r;
    Tensor index = make_tensor(IntList(&total, 1), DType::Int64);
    // Enumerates the rows as r digits that increase from left to right.
    auto* digits = index.data<int64_t>();
    for (int64_t k = 0; k < r && count > 0; ++k) digits[k] = k * step;
    for (int64_t row = 1; row < count; ++row, digits += r) {
        int64_t* next = digits + r;
        std::copy_n(digits, r, next);
        int64_t k = r - 1;
        while (next[k] == n - 1 - (r - 1 - k) * step) --k;
        ++next[k];
        for (int64_t j = k + 1; j < r; ++j) next[j] = next[j - 1] + step;
    }
    if (input.device() != index.device()) index = ops::_to_copy(index, DType::Int64, input.device());
    return ops::reshape(ops::index_select(input, 0, index), sizes);
}

}  // namespace rushlight::composites
