// The backward pass.
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

struct BackwardOptions {
    bool retain_graph = false;
    bool create_graph = false;
    bool allow_unreachable = true;  // an input that the outputs do not depend on gives an undefined gradient
    bool accumulate_grad = true;  // into the leaves' `grad`; else the gradients of `inputs` are returned
};

/// Runs the graph behind `outputs` from the gradients `grads` (undefined: ones, for outputs of one element).
/// With `inputs`, only what leads to them runs: their gradients are returned, or, with accumulate_grad, accumulated.
RL_API std::vector<Tensor> run_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options);

/// tensor.backward(): accumulates into the leaves.
RL_API void backward(const Tensor& output, const Tensor& grad = Tensor(), bool retain_graph = false,
                     bool create_graph = false);

/// Attaches autograd to core: stages, per-tensor state. Idempotent; importing rushlight_autograd calls it, a C++ program
/// calls it once.
RL_API void initialize();

}  // namespace rushlight::autograd
