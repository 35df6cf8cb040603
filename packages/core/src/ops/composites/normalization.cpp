#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "bodies/normalization.h"
#include "rushlight/ops/_rms_norm.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/batch_norm.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/group_norm.h"
#include "rushlight/ops/layer_norm.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/rsqrt.h"
#include "rushlight/ops/var_mean.h"

namespace rushlight::composites {
namespace {

// The epsilon of the dtype in which squares are summed, which is float32 for half precision.
double epsilon(DType t) {
    return t == DType::Float64 ? std::numeric_limits<double>::epsilon()
                               : double{std::numeric_limits<float>::epsilon()};
}

}  // namespace

namespace {

// PyTorch's definition: the mean of the squares, not of the squared absolute values.
Tensor complex_rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps) {
    const int64_t count = static_cast<int64_t>(normalized_shape.size());
    bool fits = count > 0 && count <= input.dim();
    std::vector<int64_t> dims;
    for (int64_t d = -count; fits && d < 0; ++d) {
        fits = input.size(d) == normalized_shape[static_cast<size_t>(d + count)];
        dims.push_back(d);
    }
    RL_CHECK(fits, throw_runtime,
             "rms_norm(normalized_shape): %s must equal the last dimensions of the input, which has shape %s",
             to_string(normalized_shape).c_str(), to_string(input.sizes()).c_str());
    RL_CHECK(!weight.defined() || std::ranges::equal(weight.sizes(), normalized_shape), throw_runtime,
             "rms_norm(weight): needs shape %s, got %s", to_string(normalized_shape).c_str(),
             to_string(weight.defined() ? weight.sizes() : IntList()).c_str());
    const Tensor mean = ops::mean(ops::mul(input, input), dims, true, std::nullopt);
    const Tensor normal = ops::mul(input, ops::rsqrt(ops::add(mean, Scalar(eps))));
    return weight.defined() ? ops::mul(normal, weight) : normal;
}

}  // namespace

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
    RL_CHECK(input.dim() >= static_cast<int64_t>(normalized_shape.size()), throw_value,
             "rms_norm(input): shape %s has fewer dimensions than normalized_shape %s",
             to_string(input.sizes()).c_str(), to_string(normalized_shape).c_str());
    if (is_complex(input.dtype()))
        return complex_rms_norm(input, normalized_shape, weight,
                                eps.value_or(epsilon(real_dtype(input.dtype()))));
    return ops::_rms_norm(input, normalized_shape, weight, eps.value_or(epsilon(input.dtype())));
}

// --- normalisations that return their statistics ---

namespace {

// Returns the mean over `dims`, kept with size 1, and the reciprocal of the standard deviation, in the input's dtype.
std::pair<Tensor, Tensor> statistics(const Tensor& input, IntList dims, double eps) {
    const DType compute = compute_dtype(input.dtype());
    const Tensor wide = compute == input.dtype() ? input : ops::_to_copy(input, compute);
    const auto [variance, mean] = ops::var_mean(wide, dims, Scalar(0), true);
    const Tensor rstd = ops::rsqrt(ops::add(variance, Scalar(eps)));
    if (compute == input.dtype()) return {mean, rstd};
    return {ops::_to_copy(mean, input.dtype()), ops::_to_copy(rstd, input.dtype())};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape,
                                                     const Tensor& weight, const Tensor& bias, double eps) {
    const Tensor made = ops::layer_norm(input, normalized_shape, weight, bias, eps);
    std::vector<int64_t> dims(normalized_shape.size());
    std::iota(dims.begin(), dims.end(), -static_cast<int64_t>(dims.size()));
    const auto [mean, rstd] = statistics(ops::detach(input), dims, eps);
    return {made, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training,
                                                     double momentum, double eps) {
    const Tensor made =
        ops::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    if (!training) {
        const Tensor none = ops::new_zeros(input, kInts<0>);
        return {made, none, ops::new_zeros(input, kInts<0>)};
    }
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
    const auto [mean, rstd] = statistics(ops::detach(input), dims, eps);
    const int64_t channels[] = {input.size(1)};
    return {made, ops::reshape(mean, channels), ops::reshape(rstd, channels)};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, int64_t N, int64_t C, int64_t HxW,
                                                     int64_t group, double eps) {
    const Tensor made = ops::group_norm(input, group, weight, bias, eps);
    RL_CHECK(input.size(0) == N && input.size(1) == C && (N * C == 0 || input.numel() / (N * C) == HxW),
             throw_runtime,
             "native_group_norm(N, C, HxW): %lld, %lld and %lld do not match the input's shape %s",
             (long long)N, (long long)C, (long long)HxW, to_string(input.sizes()).c_str());
    const int64_t rows[] = {N, group, C / group * HxW}, shape[] = {N, group};
    const auto [mean, rstd] = statistics(ops::reshape(input, rows), kInts<-1>, eps);
    return {made, ops::reshape(mean, shape), ops::reshape(rstd, shape)};
}

}  // namespace rushlight::composites
