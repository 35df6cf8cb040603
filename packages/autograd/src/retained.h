// Gradients that are kept for tensors that are not leaves: retain_grad().
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// Adds arriving gradients to the `grad` of a tensor. The tensor may be destroyed before the graph.
class RetainGrad final : public Hook {
  public:
    explicit RetainGrad(TensorImpl* tensor) : tensor_(tensor) {}
    void call(std::span<Tensor> gradients, std::span<const Tensor>) override;
    /// Called when the tensor is destroyed.
    void forget() { tensor_ = nullptr; }

  private:
    TensorImpl* tensor_;
};

/// Called when the history of the tensor of `m` has changed from `former` to m.grad_fn. Both may be null.
void move_retained(Meta& m, Node* former);

}  // namespace rushlight::autograd
