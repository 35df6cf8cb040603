// Cross entropy: one kernel for targets that are classes; operators for probabilities and for higher derivatives.
#include "bodies/loss.h"
#include "ops/differentiated.h"
#include "rushlight/ops/_cross_entropy.h"
#include "rushlight/ops/_cross_entropy_backward.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/full_like.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/log_softmax.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/nll_loss.h"
#include "rushlight/ops/nll_loss_backward.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/softmax.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

constexpr int64_t kNone = 0, kMean = 1, kSum = 2;

int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

// Reshapes (C) to (C, 1, ...), which broadcasts against (N, C, ...).
Tensor per_class(const Tensor& weight, const Tensor& input) {
    int64_t sizes[kMaxDims];
    size_t n = 0;
    sizes[n++] = weight.numel();
    for (int64_t d = class_dim(input) + 1; d < input.dim(); ++d) sizes[n++] = 1;
    return ops::reshape(weight, IntList(sizes, n));
}

Tensor sum_classes(const Tensor& t, const Tensor& input) {
    const int64_t dim = class_dim(input);
    return ops::sum(t, IntList(&dim, 1), false, std::nullopt);
}
Tensor sum_all(const Tensor& t) { return ops::sum(t, std::nullopt, false, std::nullopt); }

// Returns the weight of each position's class, or 0 where the target is ignored. With kSum, returns the sum of the weights.
Tensor position_weights(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                        int64_t ignore_index) {
    return ops::nll_loss(ops::full_like(input, Scalar(-1.0), std::nullopt, std::nullopt, false, std::nullopt),
                         target, weight, reduction, ignore_index);
}

Tensor spelled_out(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                   int64_t ignore_index, double smoothing) {
    Tensor logs = ops::log_softmax(input, class_dim(input), std::nullopt);
    if (smoothing == 0) return ops::nll_loss(logs, target, weight, reduction, ignore_index);
    Tensor loss = ops::nll_loss(logs, target, weight, reduction == kNone ? kNone : kSum, ignore_index);
    Tensor even =
        ops::neg(sum_classes(weight.defined() ? ops::mul(logs, per_class(weight, input)) : logs, input));
    even = ops::where(ops::eq(target, Scalar(ignore_index)), 0, even);
    if (reduction != kNone) even = sum_all(even);
    const auto classes = static_cast<double>(input.size(class_dim(input)));
    loss = ops::add(ops::mul(loss, 1 - smoothing), ops::mul(even, smoothing / classes));
    return reduction == kMean ? ops::div(loss, position_weights(input, target, weight, kSum, ignore_index))
                              : loss;
}

Tensor of_probabilities(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                        int64_t ignore_index, double smoothing) {
    RL_CHECK(
        is_floating(target.dtype()), throw_runtime,
        "cross_entropy_loss(target): a target of input's shape holds probabilities and needs a floating dtype, got %s",
        name(target.dtype()));
    RL_CHECK(ignore_index < 0, throw_runtime,
             "cross_entropy_loss(ignore_index): must not be set for targets that are probabilities, got %lld",
             (long long)ignore_index);
    const auto classes = static_cast<double>(input.size(class_dim(input)));
    Tensor shares = smoothing == 0 ? target : ops::add(ops::mul(target, 1 - smoothing), smoothing / classes);
    Tensor losses = ops::mul(ops::log_softmax(input, class_dim(input), std::nullopt), shares);
    if (weight.defined()) losses = ops::mul(losses, per_class(weight, input));
    if (reduction == kNone) return ops::neg(sum_classes(losses, input));
    Tensor total = ops::neg(sum_all(losses));
    return reduction == kMean ? ops::div(total, static_cast<double>(input.numel()) / classes) : total;
}

}  // namespace

Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
    RL_CHECK(label_smoothing >= 0 && label_smoothing <= 1, throw_runtime,
             "cross_entropy_loss(label_smoothing): must be between 0 and 1, got %g", label_smoothing);
    RL_CHECK(reduction >= 0 && reduction <= 2, throw_value,
             "cross_entropy_loss(reduction): must be 0 (none), 1 (mean) or 2 (sum), got %lld",
             (long long)reduction);
    RL_CHECK(input.dim() > 0, throw_index,
             "cross_entropy_loss(input): needs (batch, classes, ...) or (classes), got shape ()");
    if (target.dtype() == DType::UInt8)
        return cross_entropy_loss(input, ops::to(target, DType::Int64), weight, reduction, ignore_index,
                                  label_smoothing);
    const bool same =
        std::equal(input.sizes().begin(), input.sizes().end(), target.sizes().begin(), target.sizes().end());
    if (same && !(input.numel() == 1 && target.dtype() == DType::Int64))
        return of_probabilities(input, target, weight, reduction, ignore_index, label_smoothing);
    if (input.dim() == 1 && target.dim() == 1 && target.numel() == 1)  // the class of a single sample
        return cross_entropy_loss(input, ops::reshape(target, {}), weight, reduction, ignore_index,
                                  label_smoothing);
    if (differentiated_forward(input) || differentiated(weight))
        return spelled_out(input, target, weight, reduction, ignore_index, label_smoothing);
    return ops::_cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing);
}

// The loss of a position is w n, where n is its loss with weight 1. The mean is sum w n / sum w.
Tensor _class_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& target,
                              const Tensor& weight, const Tensor& result, int64_t reduction,
                              int64_t ignore_index) {
    Tensor share = ops::nll_loss(input, target, Tensor(), kNone, ignore_index);
    if (reduction == kMean)
        share =
            ops::div(ops::sub(share, result), position_weights(input, target, weight, kSum, ignore_index));
    const Tensor counts = ops::ne(target, Scalar(ignore_index));
    share = ops::where(counts, ops::mul(share, grad), Scalar(0));
    if (share.dtype() != weight.dtype()) share = ops::_to_copy(share, weight.dtype());
    return ops::index_add(ops::zeros_like(weight), 0,
                          ops::reshape(ops::where(counts, target, Scalar(0)), kInts<-1>),
                          ops::reshape(share, kInts<-1>));
}

// With the smoothing s, p = softmax(input), w the weight of a position's class and W the sum of all weights, the gradient at
// a position is
//     grad ((1 - s) w + s W / C) p - grad (1 - s) w onehot(target) - grad s / C weight.
Tensor cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                              const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight,
                              int64_t reduction, int64_t ignore_index, double smoothing) {
    if (!differentiated(grad, input))
        return ops::_cross_entropy_backward(grad, input, target, weight, log_sum, total_weight, reduction,
                                            ignore_index, smoothing);
    const int64_t dim = class_dim(input);
    Tensor share = reduction == kMean ? ops::div(grad, total_weight) : grad;
    if (reduction != kNone) share = ops::expand(share, target.sizes());
    // If all positions are ignored, `share` is infinite or NaN.
    if (reduction == kMean) share = ops::where(ops::eq(target, Scalar(ignore_index)), 0, share);
    // For smaller dtypes, the sum of the weights is float32, and so is `share`.
    const bool same = !weight.defined() || weight.dtype() == share.dtype();
    const Tensor weights = same ? weight : ops::_to_copy(weight, share.dtype());
    Tensor hits = ops::nll_loss_backward(ops::mul(share, 1 - smoothing), target, weights, total_weight,
                                         input.sizes(), kNone, ignore_index);
    Tensor mass = ops::mul(position_weights(input, target, weight, kNone, ignore_index), 1 - smoothing);
    Tensor even;
    if (smoothing != 0) {
        const double each = smoothing / static_cast<double>(input.size(dim));
        Tensor counts =
            ops::where(ops::eq(target, Scalar(ignore_index)), 0,
                       ops::full_like(mass, Scalar(1.0), std::nullopt, std::nullopt, false, std::nullopt));
        Tensor all = weight.defined() ? ops::mul(counts, sum_all(weight))
                                      : ops::mul(counts, static_cast<double>(input.size(dim)));
        mass = ops::add(mass, ops::mul(all, each));
        even = ops::mul(ops::unsqueeze(ops::mul(share, counts), dim), each);
        if (weight.defined()) even = ops::mul(even, per_class(weight, input));
    }
    Tensor pull =
        ops::mul(ops::softmax(input, dim, std::nullopt), ops::unsqueeze(ops::mul(share, mass), dim));
    Tensor result = ops::add(pull, hits);
    if (even.defined()) result = ops::sub(result, even);
    // For smaller dtypes, the sum of the weights is float32, and so is `result` here.
    return result.dtype() == input.dtype() ? result : ops::_to_copy(result, input.dtype());
}

}  // namespace rushlight::composites
