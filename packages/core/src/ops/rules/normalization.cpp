#include "bodies/normalization.h"

namespace rushlight::rules {
namespace {

// Checks weights, biases and statistics: floating-point, with one number for each channel, or absent. Kernels convert
// between floating dtypes, and would read other dtypes as the input's dtype.
void check_floating(const char* op, const char* name, const Tensor& t) {
    RL_CHECK(!t.defined() || is_floating(t.dtype()), throw_runtime, "%s(%s): needs a floating dtype, got %s",
             op, name, rushlight::name(t.dtype()));
}
void check_channels(const char* op, const char* name, const Tensor& t, int64_t channels) {
    RL_CHECK(!t.defined() || (t.dim() == 1 && t.impl()->size(0) == channels), throw_runtime,
             "%s(%s): needs shape (%lld,), got %s", op, name, (long long)channels,
             to_string(t.sizes()).c_str());
    check_floating(op, name, t);
}
void check_shape(const char* op, const char* name, const Tensor& t, IntList shape) {
    RL_CHECK(!t.defined() || std::equal(shape.begin(), shape.end(), t.sizes().begin(), t.sizes().end()),
             throw_runtime, "%s(%s): needs shape %s, got %s", op, name, to_string(shape).c_str(),
             to_string(t.sizes()).c_str());
    check_floating(op, name, t);
}

// Statistics have the compute dtype.
void add_statistic(Outputs& out, const Tensor& input, IntList sizes) {
    out.add(sizes, compute_dtype(input.dtype()), input.device());
}

// Adds a statistic with the shape of the input, in which the normalized dimensions have size 1.
void add_row_statistic(Outputs& out, const Tensor& input, size_t normalized) {
    int64_t sizes[kMaxDims];
    const auto n = static_cast<size_t>(input.dim());
    for (size_t d = 0; d < n; ++d) sizes[d] = d < n - normalized ? input.sizes()[d] : 1;
    add_statistic(out, input, IntList(sizes, n));
}

void check_normalized(const char* op, const Tensor& input, IntList shape, const Tensor& weight) {
    floating_only(op, input);
    RL_CHECK(!shape.empty(), throw_runtime, "%s(normalized_shape): needs at least one dimension", op);
    bool fits = static_cast<int64_t>(shape.size()) <= input.dim() &&
                std::equal(shape.begin(), shape.end(),
                           input.sizes().end() - static_cast<std::ptrdiff_t>(shape.size()));
    RL_CHECK(fits, throw_runtime, "%s(input): shape %s does not end in normalized_shape %s", op,
             to_string(input.sizes()).c_str(), to_string(shape).c_str());
    check_shape(op, "weight", weight, shape);
}

// Checks that weight and bias have the same dtype, because their gradients are computed together.
void check_pair(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias) {
    const DType wanted = weight.defined() ? weight.dtype() : input.dtype();
    RL_CHECK(!bias.defined() || bias.dtype() == wanted, throw_runtime,
             "%s(bias): needs the dtype of %s, %s, got %s", op, weight.defined() ? "weight" : "input",
             name(wanted), name(bias.dtype()));
}

// Checks that `t` has one element for each row of shape `shape`.
void check_rows(const char* op, const char* name, const Tensor& t, const Tensor& input, IntList shape) {
    int64_t size = 1;
    for (int64_t s : shape) size *= s;
    RL_CHECK(t.numel() * size == input.numel(), throw_runtime,
             "%s(%s): shape %s does not have one element for each %s of %s", op, name,
             to_string(t.sizes()).c_str(), to_string(shape).c_str(), to_string(input.sizes()).c_str());
}

void check_groups(const char* op, int64_t channels, int64_t num_groups) {
    RL_CHECK(num_groups > 0 && channels % num_groups == 0, throw_runtime,
             "%s(num_groups): %lld channels cannot be split into %lld groups", op, (long long)channels,
             (long long)num_groups);
}

// Returns the gradients of the input, the weight and the bias of a normalisation.
Outputs gradients(const Tensor& input, const Tensor& weight, IntList shape, IntList wanted) {
    Outputs out;
    out.like_if(wanted[0], input);
    DType t = weight.defined() ? weight.dtype() : input.dtype();
    for (size_t i = 1; i < wanted.size(); ++i) {
        if (wanted[i]) out.add(shape, t, input.device());
        else out.skip();
    }
    return out;
}

}  // namespace

Outputs batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                   const Tensor& running_var, bool training, double, double, bool) {
    floating_only("batch_norm", input);
    RL_CHECK(input.dim() >= 2, throw_runtime,
             "batch_norm(input): needs at least 2 dimensions (batch, channels), got shape %s",
             to_string(input.sizes()).c_str());
    const int64_t channels = input.impl()->size(1);
    check_channels("batch_norm", "weight", weight, channels);
    check_channels("batch_norm", "bias", bias, channels);
    check_pair("batch_norm", input, weight, bias);
    check_channels("batch_norm", "running_mean", running_mean, channels);
    check_channels("batch_norm", "running_var", running_var, channels);
    RL_CHECK(training || (running_mean.defined() && running_var.defined()), throw_runtime,
             "batch_norm(running_mean, running_var): must be given in evaluation mode");
    Outputs out;
    out.like(input);
    add_statistic(out, input, IntList(&channels, 1));
    add_statistic(out, input, IntList(&channels, 1));
    return out;
}
Outputs batch_norm_backward(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&,
                            const Tensor&, bool, IntList wanted) {
    const int64_t channels[] = {input.size(1)};
    return gradients(input, weight, channels, wanted);
}
Outputs masked_batch_norm_backward(const Tensor&, const Tensor&, double, double, const Tensor& input,
                                   const Tensor& weight, const Tensor&, const Tensor&, bool, IntList wanted) {
    const int64_t channels[] = {input.size(1)};
    return gradients(input, weight, channels, wanted);
}

Outputs layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias,
                   double, bool) {
    check_normalized("layer_norm", input, normalized_shape, weight);
    check_shape("layer_norm", "bias", bias, normalized_shape);
    check_pair("layer_norm", input, weight, bias);
    Outputs out;
    out.like(input);
    add_row_statistic(out, input, normalized_shape.size());
    add_row_statistic(out, input, normalized_shape.size());
    return out;
}
Outputs layer_norm_backward(const Tensor&, const Tensor& input, const Tensor& mean, const Tensor&,
                            const Tensor& weight, IntList normalized_shape, IntList wanted) {
    check_rows("layer_norm_backward", "mean", mean, input, normalized_shape);
    return gradients(input, weight, normalized_shape, wanted);
}

Outputs _rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double) {
    check_normalized("rms_norm", input, normalized_shape, weight);
    Outputs out;
    out.like(input);
    add_row_statistic(out, input, normalized_shape.size());
    return out;
}
Outputs rms_norm_backward(const Tensor&, const Tensor& input, const Tensor& rstd, const Tensor& weight,
                          IntList normalized_shape, IntList wanted) {
    check_rows("rms_norm_backward", "rstd", rstd, input, normalized_shape);
    return gradients(input, weight, normalized_shape, wanted);
}

Outputs group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double,
                   bool) {
    floating_only("group_norm", input);
    RL_CHECK(input.dim() >= 2, throw_runtime,
             "group_norm(input): needs at least 2 dimensions (batch, channels), got shape %s",
             to_string(input.sizes()).c_str());
    const int64_t channels = input.impl()->size(1);
    check_groups("group_norm", channels, num_groups);
    check_channels("group_norm", "weight", weight, channels);
    check_channels("group_norm", "bias", bias, channels);
    check_pair("group_norm", input, weight, bias);
    Outputs out;
    out.like(input);
    const int64_t statistics[] = {input.impl()->size(0), num_groups};
    add_statistic(out, input, statistics);
    add_statistic(out, input, statistics);
    return out;
}
Outputs group_norm_backward(const Tensor&, const Tensor& input, const Tensor&, const Tensor&,
                            const Tensor& weight, int64_t num_groups, IntList wanted) {
    const int64_t channels[] = {input.size(1)};
    check_groups("group_norm_backward", channels[0], num_groups);
    return gradients(input, weight, channels, wanted);
}

}  // namespace rushlight::rules
