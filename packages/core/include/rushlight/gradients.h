// The backward pass, which the provider of gradients runs.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// The functions that the provider of gradients implements for core.
struct GradientFunctions {
    /// Computes the gradients with respect to `inputs`, or to all leaves if `inputs` is empty, and adds each gradient
    /// to the `grad` of its tensor. An undefined tensor among `gradients` stands for 1; the output must then have one
    /// element.
    void (*backward)(TensorList outputs, TensorList gradients, TensorList inputs, bool retain_graph,
                     bool create_graph);
};
/// Installs the functions of the provider. They must stay valid until the process ends.
RL_API void set_gradient_functions(const GradientFunctions& functions);

/// A function that is called for each view that is made while gradients are disabled. Such a view does not store its root:
/// Note [Views and their root].
using DetachedViewWatcher = void (*)(TensorImpl* base, TensorImpl* view);
/// Installs the watcher; null removes it.
RL_API void watch_detached_views(DetachedViewWatcher watcher);

/// Calls the function `backward` of the provider of gradients. Raises RuntimeError if no provider is loaded.
RL_API void run_backward(TensorList outputs, TensorList gradients, TensorList inputs, bool retain_graph,
                         bool create_graph);
/// Sets `tensor.grad`; an undefined gradient removes it. Raises RuntimeError if the gradient's dtype, device or shape
/// differs from the tensor's.
RL_API void set_gradient(const Tensor& tensor, const Tensor& gradient);

}  // namespace rushlight
