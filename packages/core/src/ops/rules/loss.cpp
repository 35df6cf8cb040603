// Losses for classification. The input has shape (N, C, ...) or (C). The target has the same shape without the dimension of
// classes.
#include "bodies/loss.h"

namespace rushlight::rules {
namespace {

void check_reduction(const char* op, int64_t reduction) {
    RL_CHECK(reduction >= 0 && reduction <= 2, throw_value,
             "%s(reduction): must be 0 (none), 1 (mean) or 2 (sum), got %lld", op, (long long)reduction);
}

int64_t classes(const char* op, IntList input) {
    RL_CHECK(!input.empty(), throw_value, "%s(input): needs (batch, classes, ...) or (classes), got shape ()",
             op);
    return input[input.size() == 1 ? 0 : 1];
}

void check_classes(const char* op, IntList input, const Tensor& target, const Tensor& weight, DType dtype,
                   int64_t reduction) {
    check_reduction(op, reduction);
    const int64_t count = classes(op, input);
    RL_CHECK(target.dtype() == DType::Int64, throw_runtime, "%s(target): needs int64 classes, got dtype %s",
             op, name(target.dtype()));
    bool fits = target.dim() + 1 == static_cast<int64_t>(input.size());
    for (size_t d = 0, k = 0; fits && d < input.size(); ++d)
        if (d != (input.size() == 1 ? 0u : 1u)) fits = target.sizes()[k++] == input[d];
    fits |= input.size() == 1 && target.dim() == 1 && target.numel() == 1;
    RL_CHECK(
        fits, throw_value,
        "%s(input, target): target of shape %s must have the shape of input, %s, without the class dimension",
        op, to_string(target.sizes()).c_str(), to_string(input).c_str());
    if (!weight.defined()) return;
    RL_CHECK(weight.dim() == 1 && weight.numel() == count, throw_runtime,
             "%s(weight): needs shape (%lld,), one number for each class, got %s", op, (long long)count,
             to_string(weight.sizes()).c_str());
    RL_CHECK(weight.dtype() == dtype, throw_runtime,
             "%s(input, weight): must have the same dtype, got %s and %s", op, name(dtype),
             name(weight.dtype()));
}

// Returns the shape of the loss. A single sample has one loss, whatever the shape of its class.
IntList loss_shape(IntList input, const Tensor& target, int64_t reduction) {
    return reduction == 0 && input.size() > 1 ? target.sizes() : IntList();
}

void check_grad(const char* op, const Tensor& grad, IntList input, const Tensor& target, int64_t reduction) {
    const IntList shape = loss_shape(input, target, reduction);
    RL_CHECK(std::equal(shape.begin(), shape.end(), grad.sizes().begin(), grad.sizes().end()), throw_runtime,
             "%s(grad): needs the loss's shape %s, got %s", op, to_string(shape).c_str(),
             to_string(grad.sizes()).c_str());
}

void add_loss(Outputs& outs, const Tensor& input, const Tensor& target, int64_t reduction) {
    outs.add(loss_shape(input.sizes(), target, reduction), input.dtype(), input.device());
}

}  // namespace

Outputs nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                 int64_t ignore_index) {
    floating_only("nll_loss", input);
    check_classes("nll_loss", input.sizes(), target, weight, input.dtype(), reduction);
    Outputs outs;
    add_loss(outs, input, target, reduction);
    outs.add({}, compute_dtype(input.dtype()), input.device());
    return outs;
}

Outputs nll_loss_backward(const Tensor& grad, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, IntList input_sizes, int64_t reduction,
                          int64_t ignore_index) {
    floating_only("nll_loss_backward", grad);
    check_classes("nll_loss_backward", input_sizes, target, weight, grad.dtype(), reduction);
    check_grad("nll_loss_backward", grad, input_sizes, target, reduction);
    Outputs outs;
    outs.add(input_sizes, grad.dtype(), grad.device());
    return outs;
}

Outputs cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, double label_smoothing) {
    floating_only("cross_entropy_loss", input);
    check_classes("cross_entropy_loss", input.sizes(), target, weight, input.dtype(), reduction);
    Outputs outs;
    add_loss(outs, input, target, reduction);
    outs.add(target.sizes(), compute_dtype(input.dtype()), input.device());
    outs.add({}, compute_dtype(input.dtype()), input.device());
    return outs;
}

Outputs cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                               const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight,
                               int64_t reduction, int64_t ignore_index, double label_smoothing) {
    floating_only("cross_entropy_backward", input);
    check_classes("cross_entropy_backward", input.sizes(), target, weight, input.dtype(), reduction);
    same_dtype("cross_entropy_backward", "grad", grad, "input", input);
    check_grad("cross_entropy_backward", grad, input.sizes(), target, reduction);
    Outputs outs;
    outs.like(input);
    return outs;
}

}  // namespace rushlight::rules
