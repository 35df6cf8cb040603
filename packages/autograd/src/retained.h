// Gradients that are kept for tensors that are not leaves: retain_grad().
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// Adds arriving gradients to the `grad` of a tensor, which may be destroyed before the graph.
class RetainGrad final : public Hook {
  public:
    explicit RetainGrad(TensorImpl* tensor) : tensor_(tensor) {}
    void call(std::span<Tensor> gradients, std::span<const Tensor>) override;
    /// The tensor is destroyed.
    void forget() { tensor_ = nullptr; }

  private:
    TensorImpl* tensor_;
};

/// Called where the history of the tensor behind `m` changes from `former` to m.grad_fn, either of which may be null.
void move_retained(Meta& m, Node* former);

}  // namespace rushlight::autograd
