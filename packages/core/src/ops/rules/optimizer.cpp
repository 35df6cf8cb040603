// Optimizer steps write to their arguments and return nothing. The rules check that the lists match each other.
#include "bodies/optimizer.h"

namespace rushlight::rules {
namespace {

void check_parallel(const char* op, const char* argument, TensorList list, TensorList params, bool needed) {
    RL_CHECK(list.size() == params.size() || (list.empty() && !needed), throw_runtime,
             "%s(%s): needs one tensor for each of the %zu parameters, got %zu", op, argument, params.size(),
             list.size());
    for (size_t i = 0; i < list.size(); ++i) {
        RL_CHECK(std::equal(list[i].sizes().begin(), list[i].sizes().end(), params[i].sizes().begin(),
                            params[i].sizes().end()),
                 throw_runtime, "%s(%s): tensor %zu has shape %s, but its parameter has shape %s", op,
                 argument, i, to_string(list[i].sizes()).c_str(), to_string(params[i].sizes()).c_str());
        RL_CHECK(list[i].dtype() == params[i].dtype(), throw_runtime,
                 "%s(%s): tensor %zu has dtype %s, but its parameter has dtype %s", op, argument, i,
                 name(list[i].dtype()), name(params[i].dtype()));
    }
}

void check_params(const char* op, TensorList params, TensorList grads) {
    for (const Tensor& p : params) floating_only(op, p);
    check_parallel(op, "grads", grads, params, true);
}

void check_number(const char* op, const char* argument, const Tensor& t) {
    RL_CHECK(!t.defined() || (t.numel() == 1 && t.is_floating_point()), throw_runtime,
             "%s(%s): needs one floating-point number, got shape %s of dtype %s", op, argument,
             to_string(t.sizes()).c_str(), name(t.dtype()));
}

Outputs adam(const char* op, TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
             TensorList max_exp_avg_sqs, TensorList steps, bool amsgrad, const Tensor& grad_scale,
             const Tensor& found_inf) {
    check_params(op, params, grads);
    check_parallel(op, "exp_avgs", exp_avgs, params, true);
    check_parallel(op, "exp_avg_sqs", exp_avg_sqs, params, true);
    check_parallel(op, "max_exp_avg_sqs", max_exp_avg_sqs, params, amsgrad);
    RL_CHECK(steps.size() == params.size(), throw_runtime,
             "%s(state_steps): needs one number for each of the %zu parameters, "
             "got %zu",
             op, params.size(), steps.size());
    for (const Tensor& step : steps) {
        check_number(op, "state_steps", step);
        RL_CHECK(step.dtype() == DType::Float32 || step.dtype() == DType::Float64, throw_runtime,
                 "%s(state_steps): needs dtype float32, got %s", op, name(step.dtype()));
    }
    check_number(op, "grad_scale", grad_scale);
    check_number(op, "found_inf", found_inf);
    return {};
}

}  // namespace

Outputs fused_sgd(TensorList params, TensorList grads, TensorList momentum_buffers, double weight_decay,
                  double momentum, double lr, double dampening, bool nesterov, bool maximize,
                  bool is_first_step, const Tensor& grad_scale, const Tensor& found_inf) {
    check_params("_fused_sgd_", params, grads);
    check_parallel("_fused_sgd_", "momentum_buffer_list", momentum_buffers, params, momentum != 0);
    check_number("_fused_sgd_", "grad_scale", grad_scale);
    check_number("_fused_sgd_", "found_inf", found_inf);
    return {};
}

Outputs fused_adam(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                   TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
                   double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                   const Tensor& found_inf) {
    return adam("_fused_adam_", params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, amsgrad,
                grad_scale, found_inf);
}

Outputs fused_adamw(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                    TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
                    double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                    const Tensor& found_inf) {
    return adam("_fused_adamw_", params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, amsgrad,
                grad_scale, found_inf);
}

}  // namespace rushlight::rules
