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

void check_numbers(const char* op, const char* argument, TensorList numbers, TensorList params) {
    RL_CHECK(numbers.size() == params.size(), throw_runtime,
             "%s(%s): needs one number for each of the %zu parameters, got %zu", op, argument, params.size(),
             numbers.size());
    for (const Tensor& number : numbers) {
        check_number(op, argument, number);
        RL_CHECK(number.dtype() == DType::Float32 || number.dtype() == DType::Float64, throw_runtime,
                 "%s(%s): needs dtype float32, got %s", op, argument, name(number.dtype()));
    }
}

Outputs adam(const char* op, TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
             TensorList max_exp_avg_sqs, TensorList steps, bool amsgrad, const Tensor& grad_scale,
             const Tensor& found_inf) {
    check_params(op, params, grads);
    check_parallel(op, "exp_avgs", exp_avgs, params, true);
    check_parallel(op, "exp_avg_sqs", exp_avg_sqs, params, true);
    check_parallel(op, "max_exp_avg_sqs", max_exp_avg_sqs, params, amsgrad);
    check_numbers(op, "state_steps", steps, params);
    check_number(op, "grad_scale", grad_scale);
    check_number(op, "found_inf", found_inf);
    return {};
}

struct State {
    const char* argument;
    TensorList list;
    bool needed = true;
};

// Checks the arguments of a step that counts itself.
Outputs counted_step(const char* op, TensorList params, TensorList grads, std::initializer_list<State> states,
                     std::initializer_list<State> numbers) {
    check_params(op, params, grads);
    for (const State& state : states) check_parallel(op, state.argument, state.list, params, state.needed);
    for (const State& number : numbers) check_numbers(op, number.argument, number.list, params);
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

Outputs rmsprop_step(TensorList params, TensorList grads, TensorList squares, TensorList means,
                     TensorList buffers, TensorList counts, double, double, double, double, double momentum,
                     bool centered, bool) {
    return counted_step("_rmsprop_step_", params, grads,
                        {{"square_avgs", squares},
                         {"grad_avgs", means, centered},
                         {"momentum_buffer_list", buffers, momentum > 0}},
                        {{"state_steps", counts}});
}

Outputs adagrad_step(TensorList params, TensorList grads, TensorList sums, TensorList counts, double, double,
                     double, double, bool) {
    return counted_step("_adagrad_step_", params, grads, {{"state_sums", sums}}, {{"state_steps", counts}});
}

Outputs adadelta_step(TensorList params, TensorList grads, TensorList squares, TensorList changes,
                      TensorList counts, double, double, double, double, bool) {
    return counted_step("_adadelta_step_", params, grads, {{"square_avgs", squares}, {"acc_deltas", changes}},
                        {{"state_steps", counts}});
}

Outputs adamax_step(TensorList params, TensorList grads, TensorList means, TensorList largest,
                    TensorList counts, double, double, double, double, double, bool) {
    return counted_step("_adamax_step_", params, grads, {{"exp_avgs", means}, {"exp_infs", largest}},
                        {{"state_steps", counts}});
}

Outputs nadam_step(TensorList params, TensorList grads, TensorList means, TensorList squares,
                   TensorList products, TensorList counts, double, double, double, double, double, double,
                   bool, bool) {
    return counted_step("_nadam_step_", params, grads, {{"exp_avgs", means}, {"exp_avg_sqs", squares}},
                        {{"mu_products", products}, {"state_steps", counts}});
}

Outputs radam_step(TensorList params, TensorList grads, TensorList means, TensorList squares,
                   TensorList counts, double, double, double, double, double, bool, bool) {
    return counted_step("_radam_step_", params, grads, {{"exp_avgs", means}, {"exp_avg_sqs", squares}},
                        {{"state_steps", counts}});
}

Outputs rprop_step(TensorList params, TensorList grads, TensorList prevs, TensorList lengths,
                   TensorList counts, double, double, double, double, bool) {
    return counted_step("_rprop_step_", params, grads, {{"prevs", prevs}, {"step_sizes", lengths}},
                        {{"state_steps", counts}});
}

Outputs asgd_step(TensorList params, TensorList grads, TensorList averages, TensorList shares,
                  TensorList rates, TensorList counts, double, double, double, double, double, bool) {
    return counted_step("_asgd_step_", params, grads, {{"axs", averages}},
                        {{"mus", shares}, {"etas", rates}, {"state_steps", counts}});
}

}  // namespace rushlight::rules
