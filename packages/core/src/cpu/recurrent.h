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

/// lstm_gates of every step in turn, from the first element or, `backwards`, the last: output and cells (steps, batch, hidden),
/// sums (steps, batch, 4 hidden) = gates + hidden @ weight^T of the states before. Needs all of one dtype, float32 or float64.
void lstm_layer(KernelContext& ctx, const View& output, const View& cells, const View& sums,
                const View& gates, const View& hidden, const View& cell, const View& weight, bool backwards);
void lstm_layer_backward(KernelContext& ctx, const View& grad_gates, const View& grad_hidden,
                         const View& grad_cell, const View& grad_weight, const View& grad_output,
                         const View& grad_cells, const View& grad_sums, const View& hidden, const View& cell,
                         const View& weight, const View& output, const View& cells, const View& sums,
                         bool backwards);

/// With the gates r, z, n of input x and state h: n = tanh(x_n + sigmoid(x_r + h_r) h_n), z = sigmoid(x_z + h_z),
/// out = (1 - z) n + z hidden.
void gru_gates(KernelContext& ctx, const View& out, const View& from_input, const View& from_hidden,
               const View& hidden);
void gru_gates_backward(KernelContext& ctx, const View& grad_input, const View& grad_from_hidden,
                        const View& grad_old, const View& grad, const View& from_input,
                        const View& from_hidden, const View& hidden);

}  // namespace rushlight::cpu
