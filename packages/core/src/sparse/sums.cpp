// Sums over dimensions, norms and softmax.
#include <algorithm>
#include <limits>
#include <numeric>

#include "rushlight/ops/_unique_elements.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/index_reduce.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/linalg_vector_norm.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/log_softmax.h"
#include "rushlight/ops/norm.h"
#include "rushlight/ops/softmax.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight::sparse {
namespace {

Tensor sum(const Tensor& t, std::optional<IntList> dim, bool keepdim, std::optional<DType> dtype) {
    const Coordinates c = coordinates(t);
    // Sums of integers are int64, as for dense tensors, because sums of small integers would wrap around.
    if (!dtype && is_integral(t.dtype(), /*with_bool=*/true)) dtype = DType::Int64;
    if (keepdim) {
        std::vector<int64_t> dims(static_cast<size_t>(c.ndim()));
        std::iota(dims.begin(), dims.end(), 0);
        if (dim && !dim->empty()) dims.assign(dim->begin(), dim->end());
        for (int64_t& d : dims) d = wrapped("sum", d, c.ndim());
        std::ranges::sort(dims);
        Tensor result = sum(t, IntList(dims), false, dtype);
        for (int64_t d : dims) result = ops::unsqueeze(result, d);
        return is_sparse(result) ? in_layout(result, t) : result;
    }
    if (!dim || dim->empty()) return ops::sum(c.values, std::nullopt, false, dtype);
    std::vector<bool> gone(static_cast<size_t>(c.ndim()));
    for (int64_t d : *dim) {
        const auto at = static_cast<size_t>(wrapped("sum", d, c.ndim()));
        RL_CHECK(!gone[at], throw_runtime, "sum(dim): dimension %zu is given twice", at);
        gone[at] = true;
    }
    std::vector<int64_t> inner, size, front;
    for (int64_t d = 0; d < c.ndim(); ++d) {
        if (!gone[static_cast<size_t>(d)]) size.push_back(c.size[static_cast<size_t>(d)]);
        else if (d >= c.sparse_dim()) inner.push_back(d - c.sparse_dim() + 1);
        if (d < c.sparse_dim() && !gone[static_cast<size_t>(d)]) front.push_back(d);
    }
    if (front.empty()) inner.insert(inner.begin(), 0);
    const Tensor values = inner.empty() ? (dtype ? ops::to(c.values, *dtype) : c.values)
                                        : ops::sum(c.values, IntList(inner), false, dtype);
    if (front.empty()) return values;
    if (front.size() == static_cast<size_t>(c.sparse_dim()))
        return from_coordinates({c.indices, values, std::move(size), c.coalesced});
    std::vector<Tensor> rows;
    for (int64_t d : front) rows.push_back(c.along(d));
    return coalesce(from_coordinates({ops::stack(rows, 0), values, std::move(size), false}));
}

Tensor any(const Tensor& t, std::optional<IntList> dim, bool keepdim) {
    if (dim || keepdim) refuse("any", t, "a dimension");
    return ops::any(coalesced(t).values, std::nullopt, false);
}

void check_whole(const char* op, const Tensor& t, std::optional<IntList> dim, bool keepdim) {
    if ((dim && !dim->empty()) || keepdim) refuse(op, t, "a norm over some dimensions");
}

// Zeros that are not stored do not contribute to a norm of positive order.
Tensor vector_norm(const Tensor& t, Scalar p, std::optional<IntList> dim, bool keepdim,
                   std::optional<DType> dtype) {
    check_whole("linalg.vector_norm", t, dim, keepdim);
    if (p.to<double>() < 0) refuse("linalg.vector_norm", t, "a negative order");
    return ops::linalg_vector_norm(coalesced(t).values, p, std::nullopt, false, dtype);
}

Tensor norm(const Tensor& t, Scalar p, std::optional<IntList> dim, bool keepdim, std::optional<DType> dtype) {
    return vector_norm(t, p, dim, keepdim, dtype);
}

Tensor named_norm(const Tensor& t, std::optional<std::string_view> p, std::optional<IntList> dim,
                  bool keepdim, std::optional<DType> dtype) {
    if (p && *p != "fro") refuse("norm", t, "a norm other than 'fro'");
    return vector_norm(t, Scalar(2), dim, keepdim, dtype);
}

// Only stored values take part. Positions without a value have no value in the result, as if their value were -inf.
Tensor softmax_of(const char* op, const Tensor& t, int64_t dim, std::optional<DType> dtype, bool log) {
    Coordinates c = coalesced(t);
    const int64_t d = wrapped(op, dim, c.ndim());
    Tensor x = dtype ? ops::to(c.values, *dtype) : c.values;
    if (d >= c.sparse_dim()) {
        const int64_t inner = d - c.sparse_dim() + 1;
        c.values = log ? ops::log_softmax(x, inner) : ops::softmax(x, inner);
        return in_layout(from_coordinates(c), t);
    }
    if (c.nnz() > 0) {
        // The elements of one group lie along `dim`; all their other coordinates are equal.
        Coordinates others = c;
        std::vector<Tensor> rows;
        others.size.clear();
        for (int64_t i = 0; i < c.sparse_dim(); ++i) {
            if (i == d) continue;
            rows.push_back(c.along(i));
            others.size.push_back(c.size[static_cast<size_t>(i)]);
        }
        Tensor group = ops::zeros(IntList(c.along(0).sizes()), DType::Int64, x.device());
        int64_t count = 1;
        if (!rows.empty()) {
            others.indices = ops::stack(rows, 0);
            const auto [positions, inverse, counts] =
                ops::_unique_elements(others.positions(), false, true, false);
            group = inverse;
            count = positions.numel();
        }
        std::vector<int64_t> shape = x.shape();
        shape[0] = count;
        const Scalar lowest(-std::numeric_limits<double>::infinity());
        const Tensor largest = ops::index_reduce(ops::full(shape, lowest, x.dtype(), x.device()), 0, group,
                                                 ops::detach(x), "amax");
        const Tensor shifted = ops::sub(x, ops::index_select(largest, 0, group)), e = ops::exp(shifted);
        const Tensor total = ops::index_add(ops::zeros(shape, x.dtype(), x.device()), 0, group, e);
        x = log ? ops::sub(shifted, ops::index_select(ops::log(total), 0, group))
                : ops::div(e, ops::index_select(total, 0, group));
    }
    c.values = x;
    return in_layout(from_coordinates(c), t);
}

Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
    return softmax_of("softmax", t, dim, dtype, false);
}
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
    return softmax_of("log_softmax", t, dim, dtype, true);
}

}  // namespace

void install_sums() {
    RL_SPARSE(sum, "sum", sum);
    RL_SPARSE(any, "any", any);
    RL_SPARSE(linalg_vector_norm, "linalg_vector_norm", vector_norm);
    RL_SPARSE(norm, "norm", norm);
    RL_SPARSE(norm, "norm.name", named_norm);
    RL_SPARSE(softmax, "softmax", softmax);
    RL_SPARSE(log_softmax, "log_softmax", log_softmax);
}

}  // namespace rushlight::sparse
