// The gates of recurrent layers. Gates have the shape (batch, count x hidden) and states (batch, hidden). float16
// and bfloat16 are computed in float32.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes next_cell = sigmoid(f) * cell + sigmoid(i) * tanh(g) and hidden = sigmoid(o) * tanh(next_cell) from the
/// gates i, f, g, o.
void lstm_gates(KernelContext& ctx, const View& hidden, const View& next_cell, const View& gates,
                const View& cell);
void lstm_gates_backward(KernelContext& ctx, const View& grad_gates, const View& grad_old_cell,
                         const View& grad_hidden, const View& grad_cell, const View& gates, const View& cell,
                         const View& next_cell);

/// Applies lstm_gates to one step after the other. Begins with the first step, or with the last step if `backwards` is
/// true. `output` and `cells` have the shape (steps, batch, hidden). `sums` has the shape (steps, batch, 4 * hidden)
/// and receives, for each step, gates + hidden @ weight^T, where `hidden` is the state before the step. All tensors
/// must have the same dtype, float32 or float64.
void lstm_layer(KernelContext& ctx, const View& output, const View& cells, const View& sums,
                const View& gates, const View& hidden, const View& cell, const View& weight, bool backwards);
void lstm_layer_backward(KernelContext& ctx, const View& grad_gates, const View& grad_hidden,
                         const View& grad_cell, const View& grad_weight, const View& grad_output,
                         const View& grad_cells, const View& grad_sums, const View& hidden, const View& cell,
                         const View& weight, const View& output, const View& cells, const View& sums,
                         bool backwards);

/// Computes out = (1 - z) * n + z * hidden, where n = tanh(x_n + sigmoid(x_r + h_r) * h_n) and z = sigmoid(x_z + h_z).
/// `from_input` holds the gates x_r, x_z, x_n, and `from_hidden` the gates h_r, h_z, h_n.
void gru_gates(KernelContext& ctx, const View& out, const View& from_input, const View& from_hidden,
               const View& hidden);
void gru_gates_backward(KernelContext& ctx, const View& grad_input, const View& grad_from_hidden,
                        const View& grad_old, const View& grad, const View& from_input,
                        const View& from_hidden, const View& hidden);

}  // namespace rushlight::cpu
