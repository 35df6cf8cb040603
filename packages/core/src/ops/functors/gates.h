// One element of a step of a recurrent cell, and its derivatives. Gates are passed as sums, before the sigmoid or tanh.
#pragma once

#include "ops/functors/math.h"

namespace rushlight::functors {
namespace {

template <class T>
struct LstmState {
    T hidden, cell;
};
template <class T>
RL_HD inline LstmState<T> lstm_step(T in, T forget, T candidate, T out, T cell) {
    const T next = math::sigmoid(forget) * cell + math::sigmoid(in) * math::tanh(candidate);
    return {math::sigmoid(out) * math::tanh(next), next};
}

template <class T>
struct LstmGradients {
    T in, forget, candidate, out, cell;
};
template <class T>
RL_HD inline LstmGradients<T> lstm_gradients(T in, T forget, T candidate, T out, T cell, T next_cell,
                                             T grad_hidden, T grad_next_cell) {
    const T i = math::sigmoid(in), f = math::sigmoid(forget), g = math::tanh(candidate),
            o = math::sigmoid(out), c = math::tanh(next_cell);
    const T grad = grad_next_cell + grad_hidden * o * (1 - c * c);
    return {grad * g * i * (1 - i), grad * cell * f * (1 - f), grad * i * (1 - g * g),
            grad_hidden * c * o * (1 - o), grad * f};
}

/// One step of a GRU. The arguments `x_*` are products of the weights and the input, and the arguments `h_*` are
/// products of the weights and the state.
template <class T>
RL_HD inline T gru_step(T x_reset, T x_update, T x_new, T h_reset, T h_update, T h_new, T state) {
    const T r = math::sigmoid(x_reset + h_reset), z = math::sigmoid(x_update + h_update),
            n = math::tanh(x_new + r * h_new);
    return (1 - z) * n + z * state;
}

/// The gradients of a step of a GRU. `reset` is the gradient with respect to both x_reset and h_reset, and `update` is
/// the gradient with respect to both x_update and h_update.
template <class T>
struct GruGradients {
    T reset, update, x_new, h_new, state;
};
template <class T>
RL_HD inline GruGradients<T> gru_gradients(T x_reset, T x_update, T x_new, T h_reset, T h_update, T h_new,
                                           T state, T grad) {
    const T r = math::sigmoid(x_reset + h_reset), z = math::sigmoid(x_update + h_update),
            n = math::tanh(x_new + r * h_new);
    const T grad_new = grad * (1 - z) * (1 - n * n);
    return {grad_new * h_new * r * (1 - r), grad * (state - n) * z * (1 - z), grad_new, grad_new * r,
            grad * z};
}

}  // namespace
}  // namespace rushlight::functors
