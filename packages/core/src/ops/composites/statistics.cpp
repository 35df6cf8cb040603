#include <algorithm>

#include "bodies/statistics.h"
#include "ops/element_check.h"
#include "ops/views.h"
#include "rushlight/ops/_count_present.h"
#include "rushlight/ops/_nansum.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/broadcast_to.h"
#include "rushlight/ops/ceil.h"
#include "rushlight/ops/clamp.h"
#include "rushlight/ops/complex.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/floor.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/imag.h"
#include "rushlight/ops/isnan.h"
#include "rushlight/ops/lerp.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/round.h"
#include "rushlight/ops/sort.h"
#include "rushlight/ops/sqrt.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {
namespace {

enum class Between { Linear, Lower, Higher, Midpoint, Nearest };
Between interpolation_of(const char* op, std::string_view name) {
    if (name == "linear") return Between::Linear;
    if (name == "lower") return Between::Lower;
    if (name == "higher") return Between::Higher;
    if (name == "midpoint") return Between::Midpoint;
    if (name == "nearest") return Between::Nearest;
    throw_runtime("%s(interpolation): must be linear, lower, higher, midpoint or nearest, got '%.*s'", op,
                  static_cast<int>(name.size()), name.data());
}

Tensor quantiles(const char* op, const Tensor& input, const Tensor& q, std::optional<int64_t> dim,
                 bool keepdim, std::string_view interpolation, bool ignore_nan) {
    const Between between = interpolation_of(op, interpolation);
    RL_CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64, throw_runtime,
             "%s(input): must be float32 or float64, got %s", op, name(input.dtype()));
    RL_CHECK(input.numel() > 0, throw_runtime, "%s(input): shape %s has no elements", op,
             to_string(input.sizes()).c_str());
    RL_CHECK(q.dim() <= 1, throw_runtime, "%s(q): must be a number or have one dimension, got shape %s", op,
             to_string(q.sizes()).c_str());
    RL_CHECK(q.dtype() == input.dtype(), throw_runtime, "%s(q): must have input's dtype %s, got %s", op,
             name(input.dtype()), name(q.dtype()));
    check_elements(op, "q", q, Required::Probability);
    const int d = dim ? wrap_dim(op, *dim, input.dim()) : 0;
    Tensor rows = !dim               ? ops::flatten(input)
                  : input.dim() == 0 ? ops::unsqueeze(input, 0)
                                     : ops::movedim(input, IntList(&*dim, 1), kInts<-1>);
    const int64_t last = rows.size(-1) - 1;
    Tensor sorted = std::get<0>(ops::sort(rows, -1)), ranks;
    if (ignore_nan) {  // NaN are sorted to the end
        Tensor known = ops::_to_copy(ops::_count_present(ops::detach(rows), kInts<-1>, true), input.dtype());
        ranks = ops::mul(q, ops::clamp(ops::sub(known, Scalar(1)), Scalar(0)));
    } else {  // if the last element is NaN, all quantiles of the row are NaN
        Tensor bad = ops::isnan(ops::narrow(ops::detach(sorted), -1, last, 1));
        ranks = ops::where(bad, Scalar(static_cast<double>(last)), ops::mul(q, Scalar(last)));
    }
    if (ranks.dtype() != input.dtype()) ranks = ops::_to_copy(ranks, input.dtype());
    std::vector<int64_t> shape = rows.shape();
    shape.back() = q.numel();
    ranks = ops::broadcast_to(ranks, shape);
    auto at = [&](const Tensor& positions) {
        return ops::gather(sorted, -1, ops::_to_copy(ops::detach(positions), DType::Int64));
    };
    Tensor result;
    switch (between) {
        case Between::Lower: result = at(ops::floor(ranks)); break;
        case Between::Higher: result = at(ops::ceil(ranks)); break;
        case Between::Nearest: result = at(ops::round(ranks)); break;
        case Between::Midpoint:
            result = ops::lerp(at(ops::floor(ranks)), at(ops::ceil(ranks)), Scalar(0.5));
            break;
        case Between::Linear: {
            Tensor below = ops::floor(ranks);
            result = ops::lerp(at(below), at(ops::ceil(ranks)), ops::sub(ranks, below));
        }
    }
    // Moves the quantiles to the front: (..., q) becomes (q, ...), including the dimension for keepdim.
    result = q.dim() == 0 ? ops::squeeze(result, kInts<-1>) : ops::movedim(result, kInts<-1>, kInts<0>);
    if (!keepdim) return result;
    if (dim) return input.dim() == 0 ? result : ops::unsqueeze(result, d + (q.dim() == 0 ? 0 : 1));
    std::vector<int64_t> kept(static_cast<size_t>(input.dim()), 1);
    if (q.dim()) kept.insert(kept.begin(), q.numel());
    return ops::reshape(result, kept);
}
Tensor quantiles(const char* op, const Tensor& input, double q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, bool ignore_nan) {
    RL_CHECK(q >= 0 && q <= 1, throw_runtime, "%s(q): must lie between 0 and 1, got %g", op, q);
    return quantiles(op, input, ops::full({}, Scalar(q), input.dtype(), input.device()), dim, keepdim,
                     interpolation, ignore_nan);
}

// Computes half types in float32: squares exceed the range of float16, and correlations near 1 lose digits in both half
// types.
bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
Tensor widened(const Tensor& t) { return ops::_to_copy(t, DType::Float32); }

// Checks that there is one weight for each observation.
void check_weights(const char* name, const Tensor& weights, int64_t observations) {
    RL_CHECK(weights.dim() <= 1 && weights.numel() == observations, throw_runtime,
             "cov(%s): needs a number for each of the %lld observations, got shape %s", name,
             (long long)observations, to_string(weights.sizes()).c_str());
    check_elements("cov", name, weights, Required::NotNegative);
}

}  // namespace

Tensor quantile(const Tensor& input, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
    return quantiles("quantile", input, q, dim, keepdim, interpolation, false);
}
Tensor quantile_tensor(const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view interpolation) {
    return quantiles("quantile", input, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& input, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
    return quantiles("nanquantile", input, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile_tensor(const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                          std::string_view interpolation) {
    return quantiles("nanquantile", input, q, dim, keepdim, interpolation, true);
}

Tensor nansum(const Tensor& input, std::optional<IntList> dim, bool keepdim, std::optional<DType> dtype) {
    // An integer dtype has no NaN, so NaNs are replaced by 0 before the conversion.
    if (dtype && !is_differentiable(*dtype) && is_floating(input.dtype()))
        return ops::sum(ops::where(ops::isnan(input), Scalar(0), input), dim, keepdim, dtype);
    return ops::_nansum(input, dim, keepdim, dtype);
}

Tensor nanmean(const Tensor& input, std::optional<IntList> dim, bool keepdim, std::optional<DType> dtype) {
    RL_CHECK(is_differentiable(input.dtype()), throw_runtime,
             "nanmean(input): needs a floating-point tensor, got %s", name(input.dtype()));
    RL_CHECK(!dtype || is_differentiable(*dtype), throw_runtime,
             "nanmean(dtype): must be a floating or complex dtype, got %s", name(*dtype));
    return ops::div(ops::_nansum(input, dim, keepdim, dtype),
                    ops::_count_present(ops::detach(input), dim, keepdim));
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
    if (dim) {
        int d = wrap_dim("aminmax", *dim, input.dim());
        RL_CHECK(input.dim() == 0 || input.sizes()[d] > 0, throw_index,
                 "aminmax(dim): dimension %d of shape %s has no elements", d,
                 to_string(input.sizes()).c_str());
    } else {
        RL_CHECK(input.numel() > 0, throw_runtime, "aminmax(input): shape %s has no elements",
                 to_string(input.sizes()).c_str());
    }
    IntList dims = dim ? IntList(&*dim, 1) : IntList();
    return {ops::amin(input, dims, keepdim), ops::amax(input, dims, keepdim)};
}

Tensor cov(const Tensor& input, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
    RL_CHECK(input.dim() <= 2, throw_runtime,
             "cov(input): must have at most 2 dimensions, with one variable in each row, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(input.dtype() != DType::Bool, throw_runtime, "cov(input): not defined for dtype bool");
    if (is_half(input.dtype()) && (!aweights.defined() || aweights.dtype() == input.dtype())) {
        const Tensor wide = aweights.defined() ? widened(aweights) : aweights;
        return ops::_to_copy(cov(widened(input), correction, fweights, wide), input.dtype());
    }
    // Invalid weights raise an error below.
    const DType of_integers =
        aweights.defined() && is_floating(aweights.dtype()) ? aweights.dtype() : default_dtype();
    Tensor x = is_differentiable(input.dtype()) ? input : ops::_to_copy(input, of_integers);
    if (x.dim() < 2) x = ops::reshape(x, kInts<1, -1>);
    const int64_t n = x.size(1);
    Tensor weights;
    if (fweights.defined()) {
        RL_CHECK(is_integral(fweights.dtype()), throw_runtime, "cov(fweights): must be integers, got %s",
                 name(fweights.dtype()));
        check_weights("fweights", fweights, n);
        weights = fweights;
    }
    if (aweights.defined()) {
        RL_CHECK(is_floating(aweights.dtype()), throw_runtime,
                 "cov(aweights): must be floating-point, got %s", name(aweights.dtype()));
        check_weights("aweights", aweights, n);
        weights = weights.defined() ? ops::mul(weights, aweights) : aweights;
    }
    Tensor apart, weighted, free;
    if (!weights.defined()) {
        apart = ops::sub(x, ops::mean(x, kInts<1>, true));
        weighted = apart;
        free = ops::full({}, Scalar(std::max(static_cast<double>(n) - static_cast<double>(correction), 0.0)),
                         x.dtype(), x.device());
    } else {
        Tensor total = ops::sum(weights);
        apart = ops::sub(x, ops::div(ops::sum(ops::mul(x, weights), kInts<1>, true), total));
        weighted = ops::mul(apart, weights);
        Tensor lost =
            aweights.defined() && correction != 0
                ? ops::mul(ops::div(ops::sum(ops::mul(weights, aweights)), total), Scalar(correction))
                : ops::full({}, Scalar(correction), total.dtype(), x.device());
        free = ops::clamp(ops::sub(total, lost), Scalar(0));
    }
    return ops::squeeze(ops::div(ops::matmul(apart, ops::conj(ops::t(weighted))), free));
}

Tensor corrcoef(const Tensor& input) {
    RL_CHECK(input.dim() <= 2, throw_runtime,
             "corrcoef(input): must have at most 2 dimensions, with one variable in each row, got shape %s",
             to_string(input.sizes()).c_str());
    if (is_half(input.dtype())) return ops::_to_copy(corrcoef(widened(input)), input.dtype());
    Tensor joint = cov(input, 1, Tensor(), Tensor());
    if (joint.dim() == 0) return ops::div(joint, joint);  // 1, or NaN
    Tensor spread = ops::sqrt(ops::real(ops::diagonal(joint)));
    Tensor scaled = ops::div(ops::div(joint, ops::unsqueeze(spread, 1)), ops::unsqueeze(spread, 0));
    if (is_complex(scaled.dtype()))
        return ops::complex(ops::clamp(ops::real(scaled), Scalar(-1), Scalar(1)),
                            ops::clamp(ops::imag(scaled), Scalar(-1), Scalar(1)));
    return ops::clamp(scaled, Scalar(-1), Scalar(1));
}

}  // namespace rushlight::composites
