#include <algorithm>
#include <cmath>
#include <numeric>

#include "bodies/reduction.h"
#include "ops/checks.h"
#include "ops/views.h"
#include "rushlight/ops/_norm2.h"
#include "rushlight/ops/_p_norm.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/hash_tensor.h"
#include "rushlight/ops/isinf.h"
#include "rushlight/ops/linalg_matrix_norm.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/maximum.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/minimum.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/real.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sgn.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/std.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/var.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {

Tensor max_other(const Tensor& input, const Tensor& other) { return ops::maximum(input, other); }
Tensor min_other(const Tensor& input, const Tensor& other) { return ops::minimum(input, other); }

Tensor var_unbiased_dim(const Tensor& input, std::optional<IntList> dim, bool unbiased, bool keepdim) {
    return ops::var(input, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
Tensor var_unbiased(const Tensor& input, bool unbiased) {
    return ops::var(input, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& input, std::optional<IntList> dim, Scalar correction,
                                    bool keepdim) {
    return {ops::var(input, dim, correction, keepdim), ops::mean(input, dim, keepdim)};
}
std::tuple<Tensor, Tensor> var_mean_unbiased_dim(const Tensor& input, std::optional<IntList> dim,
                                                 bool unbiased, bool keepdim) {
    return var_mean(input, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> var_mean_unbiased(const Tensor& input, bool unbiased) {
    return var_mean(input, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
Tensor std_unbiased_dim(const Tensor& input, std::optional<IntList> dim, bool unbiased, bool keepdim) {
    return ops::std(input, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
Tensor std_unbiased(const Tensor& input, bool unbiased) {
    return ops::std(input, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& input, std::optional<IntList> dim, Scalar correction,
                                    bool keepdim) {
    return {ops::std(input, dim, correction, keepdim), ops::mean(input, dim, keepdim)};
}
std::tuple<Tensor, Tensor> std_mean_unbiased_dim(const Tensor& input, std::optional<IntList> dim,
                                                 bool unbiased, bool keepdim) {
    return std_mean(input, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_unbiased(const Tensor& input, bool unbiased) {
    return std_mean(input, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}

namespace {

// Raises if the norm of zero elements is undefined: for negative orders, where the norm would be 1 / 0, and for the maximum
// and the minimum.
void check_elements(const Tensor& input, double order, const std::optional<IntList>& dim) {
    if (!(order < 0 || std::isinf(order)) || input.numel() > 0) return;
    bool empty = !dim || dim->empty();
    if (dim)
        for (int64_t d : *dim) empty |= input.dim() > 0 && input.size(wrap_dim("norm", d, input.dim())) == 0;
    RL_CHECK(
        !empty, throw_runtime,
        "norm(input): shape %s has no elements along a reduced dimension, and the norm of order %g is not "
        "defined for zero elements",
        to_string(input.sizes()).c_str(), order);
}

// Returns whether each reduced dimension has size 1.
bool reduces_single_elements(const Tensor& input, const std::optional<IntList>& dim) {
    if (!dim || dim->empty()) return input.numel() == 1;
    return std::all_of(dim->begin(), dim->end(), [&](int64_t d) {
        return input.dim() == 0 || input.size(wrap_dim("norm", d, input.dim())) == 1;
    });
}

}  // namespace

Tensor norm(const Tensor& input, Scalar p, std::optional<IntList> dim, bool keepdim,
            std::optional<DType> dtype) {
    DType computed = dtype.value_or(input.dtype());
    RL_CHECK(is_differentiable(computed), throw_runtime,
             "norm(input): needs a floating-point tensor, got %s\n"
             "hint: pass dtype, or convert the input first",
             name(computed));
    if (dtype) checks::norm_dtype("norm", input, *dtype);
    double power = p.to<double>();
    check_elements(input, power, dim);
    const bool single = power != 0 && reduces_single_elements(input, dim);  // whose powers could overflow
    if (is_complex(computed)) computed = real_dtype(computed);
    if (power == 2 && !single) {
        if (!dtype || !is_complex(*dtype)) return ops::_norm2(input, dim, keepdim, dtype);
        return ops::_norm2(ops::_to_copy(input, *dtype), dim, keepdim, std::nullopt);
    }
    if (power == 0) return ops::sum(ops::ne(input, Scalar(0)), dim, keepdim, computed);
    // Integers are converted first, because a signed dtype cannot represent the magnitude of its smallest integer.
    const Tensor converted = dtype && *dtype != input.dtype() ? ops::_to_copy(input, *dtype) : input;
    if (std::isinf(power) || single) {
        const IntList along = dim.value_or(IntList());
        const Tensor magnitude = ops::abs(converted);
        return power > 0 ? ops::amax(magnitude, along, keepdim) : ops::amin(magnitude, along, keepdim);
    }
    if (power == 1) return ops::sum(ops::abs(converted), dim, keepdim, std::nullopt);
    return ops::_p_norm(converted, p, dim, keepdim);
}

Tensor _p_norm(const Tensor& input, Scalar p, std::optional<IntList> dim, bool keepdim) {
    if (input.dtype() == DType::Float16 ||
        input.dtype() == DType::BFloat16)  // their powers overflow before the norm does
        return ops::_to_copy(_p_norm(ops::_to_copy(input, DType::Float32), p, dim, keepdim), input.dtype());
    return ops::pow(ops::sum(ops::pow(ops::abs(input), p), dim, keepdim), Scalar(1 / p.to<double>()));
}

// The derivative is sgn(x) (|x| / norm)^(p - 1). It is infinite or undefined at zero for p < 1, and where the norm is 0.
// There the gradient is 0, which is a subgradient.
Tensor _p_norm_backward(const Tensor& grad, const Tensor& input, Scalar p, std::optional<IntList> dim,
                        bool keepdim, const Tensor& result) {
    std::vector<int64_t> kept(input.sizes().begin(), input.sizes().end());
    if (!dim || dim->empty()) std::fill(kept.begin(), kept.end(), 1);
    else if (!kept.empty())
        for (const int64_t d : *dim) kept[static_cast<size_t>(wrap_dim("norm", d, input.dim()))] = 1;
    auto raised = [&](const Tensor& t) { return keepdim ? t : ops::reshape(t, kept); };
    const Tensor length = raised(result);
    const Tensor none = ops::logical_or(ops::eq(input, Scalar(0)), ops::eq(length, Scalar(0)));
    const Tensor share = ops::div(ops::where(none, Scalar(1), ops::abs(input)),
                                  ops::where(ops::eq(length, Scalar(0)), Scalar(1), length));
    const Tensor derivative = ops::mul(ops::sgn(input), ops::pow(share, Scalar(p.to<double>() - 1)));
    return ops::where(none, Scalar(0), ops::mul(raised(grad), derivative));
}
Tensor norm_name(const Tensor& input, std::optional<std::string_view> name, std::optional<IntList> dim,
                 bool keepdim, std::optional<DType> dtype) {
    const std::string_view p = name.value_or("fro");
    if (p == "nuc")
        return ops::linalg_matrix_norm(input, p, dim.value_or(IntList(kInts<-2, -1>)), keepdim, dtype);
    RL_CHECK(p == "fro", throw_runtime, "norm(p): must be a number, 'fro' or 'nuc', got '%.*s'",
             int(p.size()), p.data());
    return norm(input, Scalar(2), dim, keepdim, dtype);
}

Tensor logsumexp(const Tensor& given, IntList dim, bool keepdim) {
    Tensor input = is_differentiable(given.dtype()) ? given : ops::_to_copy(given, default_dtype());
    if (input.numel() == 0) return ops::log(ops::sum(ops::exp(input), dim, keepdim));  // no maximum
    // Subtracts the largest element, which changes neither the value nor the gradient. An infinite maximum is not
    // subtracted.
    Tensor shift = ops::amax(ops::detach(ops::real(input)), dim, true);
    shift = ops::where(ops::isinf(shift), Scalar(0), shift);
    Tensor sums = ops::log(ops::sum(ops::exp(ops::sub(input, shift)), dim, keepdim));
    if (!keepdim) shift = dim.empty() ? ops::squeeze(shift) : ops::squeeze(shift, dim);
    return ops::add(sums, shift);
}

Tensor hash_tensor(const Tensor& input, int64_t mode) {
    // The dimensions are listed explicitly: without the list, vmap would reduce the batch dimension, too.
    if (input.dim() == 0) return ops::hash_tensor(ops::unsqueeze(input, 0), kInts<0>, false, mode);
    std::vector<int64_t> all(static_cast<size_t>(input.dim()));
    std::iota(all.begin(), all.end(), int64_t{0});
    return ops::hash_tensor(input, all, false, mode);
}

}  // namespace rushlight::composites
