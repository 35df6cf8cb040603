#include <algorithm>
#include <limits>

#include "bodies/scan.h"
#include "ops/numbers.h"
#include "ops/views.h"
#include "rushlight/ops/_recurrence.h"
#include "rushlight/ops/_shift.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clamp_max.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/full_like.h"
#include "rushlight/ops/logical_xor.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/nan_to_num.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"

namespace rushlight::composites {
namespace {

void check_samples(const char* op, const char* argument, const Tensor& t) {
    RL_CHECK(t.dtype() != DType::Bool, throw_runtime, "%s(%s): not defined for dtype bool", op, argument);
}

// Returns twice the areas between neighbouring samples, whose coordinates are `x`, or whose spacing is 1 if `x` is null.
Tensor strips(const char* op, const Tensor& samples, int64_t dim, const Tensor* x) {
    check_samples(op, "y", samples);
    RL_CHECK(samples.dim() > 0, throw_index, "%s(y): needs at least one dimension, got a 0-d tensor", op);
    const Tensor y = as_int64_if_integral(samples);
    const int d = wrap_dim(op, dim, y.dim());
    const int64_t n = y.sizes()[d], rest = std::max<int64_t>(n - 1, 0);
    const int64_t first = std::min<int64_t>(1, n);
    Tensor sums = ops::add(ops::narrow(y, d, 0, rest), ops::narrow(y, d, first, n - first));
    if (!x) return sums;
    check_samples(op, "x", *x);
    Tensor positions = as_int64_if_integral(*x);
    if (x->dim() == 1) {
        RL_CHECK(x->numel() == n, throw_runtime,
                 "%s(x): needs a coordinate for each of the %lld samples, got %lld", op, (long long)n,
                 (long long)x->numel());
        std::vector<int64_t> shape(static_cast<size_t>(y.dim() - d), 1);
        shape[0] = n;
        positions = ops::reshape(positions, shape);
    }
    const int64_t behind = y.dim() - d;
    RL_CHECK(positions.dim() >= behind && positions.size(-behind) == n, throw_runtime,
             "%s(x): shape %s does not match the %lld samples along dimension %d", op,
             to_string(x->sizes()).c_str(), (long long)n, d);
    return ops::mul(sums, ops::sub(ops::narrow(positions, -behind, first, n - first),
                                   ops::narrow(positions, -behind, 0, rest)));
}
Tensor halved(const Tensor& t, Scalar dx) { return ops::mul(t, Scalar(dx.to<double>() / 2)); }

}  // namespace

Tensor _shift(const Tensor& input, int64_t dim, int64_t by, Scalar fill) {
    const int d = wrap_dim("_shift", dim, input.dim());
    const int64_t n = input.dim() ? input.sizes()[d] : 1;
    if (n == 0) return input;
    // A result of a batched tensor is batched, also if it does not depend on the values.
    if (n == 1) return ops::full_like(ops::detach(input), fill);
    std::vector<int64_t> one = input.shape();
    if (input.dim()) one[static_cast<size_t>(d)] = 1;
    Tensor end = ops::full(one, fill, input.dtype(), input.device());
    Tensor kept = ops::narrow(input, d, by > 0 ? 0 : 1, n - 1);
    const Tensor parts[] = {by > 0 ? end : kept, by > 0 ? kept : end};
    return ops::cat(parts, d);
}

Tensor _logcumsumexp_gradient(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim,
                              bool reverse) {
    // exp(input[i] - result[j]) is the product of exp(input[i] - result[i]) and exp(result[k - 1] - result[k]) for all k in
    // (i, j]. No factor exceeds 1. Where a result is inf, infinite elements receive the whole gradient. Where a result is
    // -inf, all elements up to this position are -inf.
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const Tensor finite = ops::nan_to_num(result, kNan, std::nullopt, 0.0);
    const Tensor apart = ops::sub(ops::_shift(finite, dim, 1, Scalar(0)), finite);
    Tensor decay = ops::exp(is_complex(input.dtype()) ? apart : ops::clamp_max(apart, Scalar(0)));
    Tensor share = ops::exp(ops::sub(ops::nan_to_num(input, kNan), finite));
    return reverse ? ops::mul(ops::_recurrence(decay, grad, dim, true), share)
                   : ops::_recurrence(decay, ops::mul(grad, share), dim, false);
}

Tensor diff(const Tensor& given, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
    RL_CHECK(given.dim() > 0, throw_runtime, "diff(input): needs at least one dimension, got a 0-d tensor");
    RL_CHECK(n >= 0, throw_runtime, "diff(n): must not be negative, got %lld", (long long)n);
    const int d = wrap_dim("diff", dim, given.dim());
    auto check = [&](const char* name, const Tensor& t) {
        bool fits = t.dim() == given.dim();
        for (int k = 0; fits && k < t.dim(); ++k) fits = k == d || t.sizes()[k] == given.sizes()[k];
        RL_CHECK(fits, throw_runtime,
                 "diff(%s): shape %s must match input's shape %s except along "
                 "dimension %d",
                 name, to_string(t.sizes()).c_str(), to_string(given.sizes()).c_str(), d);
    };
    if (prepend.defined()) check("prepend", prepend);
    if (append.defined()) check("append", append);
    if (n == 0) return ops::clone(given);
    Tensor t = given;
    if (prepend.defined() || append.defined()) {
        std::vector<Tensor> parts;
        if (prepend.defined()) parts.push_back(prepend);
        parts.push_back(given);
        if (append.defined()) parts.push_back(append);
        t = ops::cat(parts, d);
    }
    for (; n > 0; --n) {
        const int64_t size = t.sizes()[d];
        if (size == 0) return ops::clone(t);
        Tensor later = ops::narrow(t, d, 1, size - 1), earlier = ops::narrow(t, d, 0, size - 1);
        t = t.dtype() == DType::Bool ? ops::logical_xor(later, earlier) : ops::sub(later, earlier);
    }
    return t;
}

Tensor trapezoid(const Tensor& y, Scalar dx, int64_t dim) {
    if (y.dim() > 0 && y.size(dim) == 0) return ops::sum(y, IntList(&dim, 1), false, y.dtype());
    if (y.dim() == 0 || y.dtype() == DType::Bool || y.size(dim) < 2)
        return halved(ops::sum(strips("trapezoid", y, dim, nullptr), IntList(&dim, 1)), dx);
    // Each sample belongs to two strips, except for the first and the last.
    const Tensor samples = as_int64_if_integral(y);
    const int64_t n = samples.size(dim);
    const Tensor ends = ops::add(ops::select(samples, dim, 0), ops::select(samples, dim, n - 1));
    const Tensor inner = ops::sum(ops::narrow(samples, dim, 1, n - 2), IntList(&dim, 1));
    return halved(ops::add(ends, inner, Scalar(int64_t{2})), dx);
}
Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
    if (y.dim() > 0 && y.size(dim) == 0) return ops::sum(y, IntList(&dim, 1), false, y.dtype());
    const int64_t behind = dim < 0 ? dim : dim - y.dim();  // x may have more dimensions than y
    return halved(ops::sum(strips("trapezoid", y, dim, &x), IntList(&behind, 1)), Scalar(1));
}
Tensor cumulative_trapezoid(const Tensor& y, Scalar dx, int64_t dim) {
    return ops::cumsum(halved(strips("cumulative_trapezoid", y, dim, nullptr), dx), dim);
}
Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
    const int64_t behind = dim < 0 ? dim : dim - y.dim();
    return ops::cumsum(halved(strips("cumulative_trapezoid", y, dim, &x), Scalar(1)), behind);
}

}  // namespace rushlight::composites
