// The gates of recurrent layers. Gates (batch, count x hidden), states (batch, hidden); float16 and bfloat16 go through
// float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// With the gates i, f, g, o: next_cell = sigmoid(f) cell + sigmoid(i) tanh(g), hidden = sigmoid(o) tanh(next_cell).
void lstm_gates(KernelContext& ctx, const View& hidden, const View& next_cell, const View& gates,
                const View& cell);
void lstm_gates_backward(KernelContext& ctx, const View& grad_gates, const View& grad_old_cell,
                         const View& grad_hidden, const View& grad_cell, const View& gates, const View& cell,
                         const View& next_cell);

/// With the gates r, z, n of input x and state h: n = tanh(x_n + sigmoid(x_r + h_r) h_n), z = sigmoid(x_z + h_z),
/// out = (1 - z) n + z hidden.
void gru_gates(KernelContext& ctx, const View& out, const View& from_input, const View& from_hidden,
               const View& hidden);
void gru_gates_backward(KernelContext& ctx, const View& grad_input, const View& grad_from_hidden,
                        const View& grad_old, const View& grad, const View& from_input,
                        const View& from_hidden, const View& hidden);

}  // namespace rushlight::cpu
