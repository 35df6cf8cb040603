// Gradients of normalisations: fused kernels, and the same formulas in operators where the gradients are differentiated
// themselves. See Note [Differentiable composites].
#include "bodies/normalization_backward.h"
#include "ops/differentiated.h"
#include "rushlight/ops/_batch_norm_backward.h"
#include "rushlight/ops/_group_norm_backward.h"
#include "rushlight/ops/_layer_norm_backward.h"
#include "rushlight/ops/_masked_batch_norm_backward.h"
#include "rushlight/ops/_rms_norm_backward.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/hardtanh_backward.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/rsqrt.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"

namespace rushlight::composites {
namespace {

struct Dims {
    int64_t dim[kMaxDims];
    size_t count = 0;

    void add(int64_t d) { dim[count++] = d; }
    operator IntList() const { return {dim, count}; }
};

// The normalised input and its scale.
struct Normalized {
    Tensor value, scale;

    Normalized(const Tensor& input, IntList dims, double eps, bool centered) {
        Tensor x = centered ? ops::sub(input, mean(input, dims)) : input;
        scale = ops::rsqrt(ops::add(mean(ops::mul(x, x), dims), eps));
        value = ops::mul(x, scale);
    }
    static Tensor mean(const Tensor& t, IntList dims) { return ops::mean(t, dims, true, std::nullopt); }

    // Returns the gradient of the input, given the gradient of `value`. The components of `grad` along the mean and along
    // `value` are removed, because the normalised value does not depend on shift and scale.
    Tensor back(const Tensor& grad, IntList dims, bool centered) const {
        Tensor free = ops::sub(grad, ops::mul(value, mean(ops::mul(grad, value), dims)));
        if (centered) free = ops::sub(free, mean(grad, dims));
        return ops::mul(free, scale);
    }
};

// Converts half precision to float32, because powers of `scale` exceed the range of half precision.
Tensor wide(const Tensor& t) { return t.defined() ? ops::to(t, compute_dtype(t.dtype())) : t; }
Tensor narrow(const Tensor& t, const Tensor& like) { return t.defined() ? ops::to(t, like.dtype()) : t; }

Tensor total(const Tensor& t, IntList dims, IntList shape) {
    return ops::reshape(dims.empty() ? t : ops::sum(t, dims, true, std::nullopt), shape);
}

// Reshapes (C) to (C, 1, ...), which broadcasts against (N, C, ...).
Tensor per_channel(const Tensor& t, const Tensor& input) {
    int64_t sizes[kMaxDims];
    size_t n = 0;
    sizes[n++] = t.numel();
    for (int64_t d = 2; d < input.dim(); ++d) sizes[n++] = 1;
    return ops::reshape(t, IntList(sizes, n));
}

// Returns all dimensions except the dimension of the channels.
Dims around_channels(const Tensor& input) {
    Dims dims;
    dims.add(0);
    for (int64_t d = 2; d < input.dim(); ++d) dims.add(d);
    return dims;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& weight, const Tensor& save_mean,
                                                       const Tensor& save_invstd, bool training, double eps,
                                                       IntList wanted) {
    if (!differentiated(grad, input, weight))
        return ops::_batch_norm_backward(grad, input, weight, save_mean, save_invstd, training, wanted);
    const Dims dims = around_channels(input);
    const int64_t channels[] = {input.size(1)};
    const Tensor slopes = wide(grad);
    Tensor scaled = weight.defined() ? ops::mul(slopes, per_channel(wide(weight), input)) : slopes;
    Tensor value, grad_input, grad_weight, grad_bias;
    if (training) {
        const Normalized n(wide(input), dims, eps, true);
        value = n.value;
        if (wanted[0]) grad_input = n.back(scaled, dims, true);
    } else {
        Tensor scale = per_channel(save_invstd, input);
        value = ops::mul(ops::sub(wide(input), per_channel(save_mean, input)), scale);
        if (wanted[0]) grad_input = ops::mul(scaled, scale);
    }
    if (wanted[1]) grad_weight = total(ops::mul(slopes, value), dims, channels);
    if (wanted[2]) grad_bias = total(grad, dims, channels);
    return {narrow(grad_input, input), narrow(grad_weight, grad), grad_bias};
}

std::tuple<Tensor, Tensor, Tensor> masked_batch_norm_backward(const Tensor& grad, const Tensor& activation,
                                                              double low, double high, const Tensor& input,
                                                              const Tensor& weight, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool training,
                                                              double eps, IntList wanted) {
    if (!differentiated(grad, activation, input, weight))
        return ops::_masked_batch_norm_backward(grad, activation, low, high, input, weight, save_mean,
                                                save_invstd, training, wanted);
    return batch_norm_backward(ops::hardtanh_backward(grad, activation, low, high), input, weight, save_mean,
                               save_invstd, training, eps, wanted);
}

namespace {

std::tuple<Tensor, Tensor, Tensor> lines_backward(const Tensor& grad, const Tensor& input,
                                                  const Tensor& weight, IntList shape, double eps,
                                                  bool centered, bool want_input, bool want_weight,
                                                  bool want_bias) {
    Dims inner, outer;
    const int64_t first = input.dim() - static_cast<int64_t>(shape.size());
    for (int64_t d = 0; d < input.dim(); ++d) (d < first ? outer : inner).add(d);
    const Tensor slopes = wide(grad);
    const Normalized n(wide(input), inner, eps, centered);
    Tensor grad_input, grad_weight, grad_bias;
    if (want_input)
        grad_input = n.back(weight.defined() ? ops::mul(slopes, wide(weight)) : slopes, inner, centered);
    if (want_weight) grad_weight = total(ops::mul(slopes, n.value), outer, shape);
    if (want_bias) grad_bias = total(grad, outer, shape);
    return {narrow(grad_input, input), narrow(grad_weight, grad), grad_bias};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const Tensor& weight, IntList normalized_shape,
                                                       double eps, IntList wanted) {
    if (!differentiated(grad, input, weight))
        return ops::_layer_norm_backward(grad, input, mean, rstd, weight, normalized_shape, wanted);
    return lines_backward(grad, input, weight, normalized_shape, eps, true, wanted[0], wanted[1], wanted[2]);
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                                             const Tensor& weight, IntList normalized_shape, double eps,
                                             IntList wanted) {
    if (!differentiated(grad, input, weight))
        return ops::_rms_norm_backward(grad, input, rstd, weight, normalized_shape, wanted);
    auto [grad_input, grad_weight, none] =
        lines_backward(grad, input, weight, normalized_shape, eps, false, wanted[0], wanted[1], false);
    return {grad_input, grad_weight};
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const Tensor& weight, int64_t num_groups, double eps,
                                                       IntList wanted) {
    if (!differentiated(grad, input, weight))
        return ops::_group_norm_backward(grad, input, mean, rstd, weight, num_groups, wanted);
    // The number of channels of a group; also correct if there are no samples.
    int64_t size = input.size(1) / num_groups;
    for (int64_t d = 2; d < input.dim(); ++d) size *= input.size(d);
    const int64_t groups[] = {input.size(0), num_groups, size}, inner[] = {2};
    const int64_t channels[] = {input.size(1)};
    const Tensor slopes = wide(grad);
    const Normalized n(ops::reshape(wide(input), groups), inner, eps, true);
    const Dims dims = around_channels(input);
    Tensor grad_input, grad_weight, grad_bias;
    if (wanted[0]) {
        Tensor scaled = weight.defined() ? ops::mul(slopes, per_channel(wide(weight), input)) : slopes;
        grad_input = ops::reshape(n.back(ops::reshape(scaled, groups), inner, true), input.sizes());
    }
    if (wanted[1])
        grad_weight = total(ops::mul(slopes, ops::reshape(n.value, input.sizes())), dims, channels);
    if (wanted[2]) grad_bias = total(grad, dims, channels);
    return {narrow(grad_input, input), narrow(grad_weight, grad), grad_bias};
}

}  // namespace rushlight::composites
