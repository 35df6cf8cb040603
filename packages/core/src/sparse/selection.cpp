// Slices of sparse tensors, concatenation, and dimensions of size 1.
#include <algorithm>

#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/narrow_copy.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/repeat_interleave.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/searchsorted.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sort.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unbind.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/promotion.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight::sparse {
namespace {

// Returns the elements of c at `positions`, with the coordinates `along` in dimension `dim`. If `along` is undefined,
// the result lacks that dimension.
Coordinates picked(const Coordinates& c, const Tensor& positions, int64_t dim, const Tensor& along) {
    std::vector<Tensor> rows;
    for (int64_t d = 0; d < c.sparse_dim(); ++d) {
        if (d != dim) rows.push_back(ops::index_select(c.along(d), 0, positions));
        else if (along.defined()) rows.push_back(along);
    }
    Coordinates result{rows.empty() ? Tensor() : ops::stack(rows, 0),
                       ops::index_select(c.values, 0, positions), c.size, false};
    return result;
}

Tensor index_select(const Tensor& t, int64_t dim, const Tensor& index) {
    const char* op = "index_select";
    if (!is_sparse(t)) refuse(op, index, "an index");
    Coordinates c = coordinates(t);
    const int64_t d = wrapped(op, dim, c.ndim());
    RL_CHECK(!is_sparse(index) && index.dim() <= 1 &&
                 (index.dtype() == DType::Int64 || index.dtype() == DType::Int32),
             throw_runtime,
             "index_select(index): must be a dense int32 or int64 vector, got %s of shape %s and layout %s",
             name(index.dtype()), to_string(index.sizes()).c_str(), layout_name(index));
    const Tensor wanted = ops::reshape(ops::to(index, DType::Int64), kInts<-1>);
    const int64_t n = c.size[static_cast<size_t>(d)];
    if (wanted.numel() > 0)
        RL_CHECK(*ops::to(ops::amin(wanted), Device()).data<int64_t>() >= 0 &&
                     *ops::to(ops::amax(wanted), Device()).data<int64_t>() < n,
                 throw_index, "index_select(index): an index is out of range for dimension %lld of size %lld",
                 (long long)d, (long long)n);
    if (d >= c.sparse_dim()) {
        c.values = ops::index_select(c.values, d - c.sparse_dim() + 1, wanted);
        c.size[static_cast<size_t>(d)] = wanted.numel();
        return from_coordinates(c);
    }
    // The elements are sorted by the coordinate, so that the elements of each slice are adjacent.
    const auto [sorted, order] = ops::sort(c.along(d), -1, false, true);
    const Tensor begin = ops::searchsorted(sorted, wanted),
                 end = ops::searchsorted(sorted, wanted, false, true);
    const Tensor count = ops::sub(end, begin), slice = ops::repeat_interleave(count);
    const Tensor first = ops::sub(ops::cumsum(count, 0), count);
    const Tensor nth = ops::sub(ops::arange(Scalar(slice.numel()), DType::Int64, t.device()),
                                ops::index_select(first, 0, slice));
    const Tensor positions = ops::index_select(order, 0, ops::add(ops::index_select(begin, 0, slice), nth));
    Coordinates result = picked(c, positions, d, slice);
    result.size[static_cast<size_t>(d)] = wanted.numel();
    result.coalesced = c.coalesced && d == 0;
    return in_layout(from_coordinates(result), t);
}

Tensor select(const Tensor& t, int64_t dim, int64_t index) {
    const char* op = "select";
    Coordinates c = coordinates(t);
    const int64_t d = wrapped(op, dim, c.ndim()), n = c.size[static_cast<size_t>(d)];
    RL_CHECK(index >= -n && index < n, throw_index,
             "select(index): %lld is out of range for dimension %lld of size %lld", (long long)index,
             (long long)d, (long long)n);
    const int64_t at = index < 0 ? index + n : index;
    std::vector<int64_t> size = c.size;
    size.erase(size.begin() + d);
    if (d >= c.sparse_dim()) {
        c.values = ops::select(c.values, d - c.sparse_dim() + 1, at);
        c.size = std::move(size);
        return from_coordinates(c);
    }
    const Tensor positions = ops::reshape(ops::nonzero(ops::eq(c.along(d), Scalar(at))), kInts<-1>);
    Coordinates result = picked(c, positions, d, Tensor());
    // Selecting in the only sparse dimension returns a dense tensor.
    if (!result.indices.defined()) return ops::sum(result.values, kInts<0>, false, t.dtype());
    result.size = std::move(size);
    result.coalesced = c.coalesced;
    return from_coordinates(result);
}

std::vector<Tensor> unbind(const Tensor& t, int64_t dim) {
    const int64_t d = wrapped("unbind", dim, t.dim());
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < t.size(d); ++i) slices.push_back(select(t, d, i));
    return slices;
}

Tensor narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
    const int64_t n = t.size(wrapped("narrow_copy", dim, t.dim())), from = start < 0 ? start + n : start;
    RL_CHECK(
        from >= 0 && length >= 0 && from <= n - length, throw_runtime,
        "narrow_copy(start, length): must be a range within dimension %lld of size %lld, got %lld and %lld",
        (long long)dim, (long long)n, (long long)start, (long long)length);
    const Tensor range =
        ops::arange(Scalar(from), Scalar(from + length), Scalar(1), DType::Int64, t.device());
    return index_select(t, dim, range);
}

// Inserts a dimension of size 1. It is sparse if it comes before or directly after the sparse dimensions.
Tensor unsqueeze(const Tensor& t, int64_t dim) {
    Coordinates c = coordinates(t);
    const int64_t d = wrapped("unsqueeze", dim, c.ndim() + 1);
    if (d > c.sparse_dim()) {
        c.values = ops::unsqueeze(c.values, d - c.sparse_dim() + 1);
    } else {
        std::vector<Tensor> rows;
        for (int64_t i = 0; i < c.sparse_dim(); ++i) rows.push_back(c.along(i));
        const int64_t nnz[] = {c.nnz()};
        rows.insert(rows.begin() + d, ops::zeros(nnz, DType::Int64, t.device()));
        c.indices = ops::stack(rows, 0);
    }
    c.size.insert(c.size.begin() + d, 1);
    return from_coordinates(c);
}

Tensor cat(TensorList tensors, int64_t dim) {
    std::vector<Coordinates> all;
    for (const Tensor& t : tensors) {
        RL_CHECK(is_sparse(t), throw_runtime,
                 "cat(tensors): sparse and dense tensors cannot be joined\nhint: use to_dense()");
        all.push_back(coordinates(t));
    }
    const Coordinates& first = all.front();
    const int64_t d = wrapped("cat", dim, first.ndim());
    std::vector<TensorOrScalar> operands(tensors.begin(), tensors.end());
    const DType dtype = result_dtype(operands);
    int64_t total = 0;
    for (const Coordinates& c : all) {
        bool fits = c.sparse_dim() == first.sparse_dim() && c.ndim() == first.ndim();
        for (int64_t i = 0; fits && i < c.ndim(); ++i)
            fits = i == d || c.size[static_cast<size_t>(i)] == first.size[static_cast<size_t>(i)];
        RL_CHECK(
            fits, throw_runtime,
            "cat(tensors): needs equal shapes except in dimension %lld, and equal numbers of sparse dimensions; got %s "
            "and %s",
            (long long)d, to_string(first.size).c_str(), to_string(c.size).c_str());
        total += c.size[static_cast<size_t>(d)];
    }
    std::vector<Tensor> indices, values;
    int64_t before = 0;
    bool once = d == 0 && first.sparse_dim() > 0;
    for (const Coordinates& c : all) {
        const int64_t own = c.size[static_cast<size_t>(d)];
        Tensor v = ops::to(c.values, dtype);
        if (d < c.sparse_dim()) {
            std::vector<Tensor> rows;
            for (int64_t i = 0; i < c.sparse_dim(); ++i)
                rows.push_back(i == d ? ops::add(c.along(i), Scalar(before)) : c.along(i));
            indices.push_back(ops::stack(rows, 0));
        } else {
            // Along a dense dimension, each tensor is padded with zeros at the positions of the other tensors.
            std::vector<int64_t> left = v.shape(), right = v.shape();
            const auto at = static_cast<size_t>(d - c.sparse_dim() + 1);
            left[at] = before;
            right[at] = total - before - own;
            const Tensor parts[] = {ops::zeros(left, dtype, v.device()), v,
                                    ops::zeros(right, dtype, v.device())};
            v = ops::cat(parts, static_cast<int64_t>(at));
            indices.push_back(c.indices);
        }
        values.push_back(v);
        once &= c.coalesced;
        before += own;
    }
    std::vector<int64_t> size = first.size;
    size[static_cast<size_t>(d)] = total;
    const Tensor joined =
        from_coordinates({ops::cat(indices, 1), ops::cat(values, 0), std::move(size), once});
    const bool alike =
        std::ranges::all_of(tensors, [&](const Tensor& t) { return layout_of(t) == layout_of(tensors[0]); });
    return alike ? in_layout(joined, tensors[0]) : joined;
}

}  // namespace

void install_selection() {
    RL_SPARSE(index_select, "index_select", index_select);
    RL_SPARSE(select, "select", select);
    RL_SPARSE(unbind, "unbind", unbind);
    RL_SPARSE(narrow_copy, "narrow_copy", narrow_copy);
    RL_SPARSE(unsqueeze, "unsqueeze", unsqueeze);
    RL_SPARSE(cat, "cat", cat);
}

}  // namespace rushlight::sparse
