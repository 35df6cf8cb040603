#include "retained.h"

#include <algorithm>

#include "rushlight/ops/add.h"
#include "rushlight/ops/clone.h"

namespace rushlight::autograd {

void RetainGrad::call(std::span<Tensor> gradients, std::span<const Tensor>) {
    if (!tensor_ || !gradients[0].defined()) return;
    Tensor before = Tensor::share(tensor_->grad());
    Tensor sum = before.defined() ? ops::add(before, gradients[0]) : ops::clone(gradients[0]);
    tensor_->set_grad(Ref<TensorImpl>::share(sum.impl()));
}

// Note [Retained gradients]
// A hook of register_hook() belongs to the value that the tensor had when it was registered, so it stays with the
// node that computed this value. A retained gradient belongs to the tensor: when an in-place operator changes the
// tensor's history, the hook that retains the gradient moves to the new node. Such hooks are in a separate list,
// which runs after all tensor hooks, whatever the order of registration.
void move_retained(Meta& m, Node* former) {
    if (!m.retains_grad()) return;
    const std::shared_ptr<RetainGrad>& hook = m.hooks.get().retained;
    std::lock_guard lock(hooks_mutex());
    if (former)
        std::erase_if(former->hooks().retained, [&](const auto& entry) { return entry.second == hook; });
    if (m.grad_fn) m.grad_fn->hooks().retained.emplace_back(m.index, hook);
}

void retain_grad(const Tensor& t) {
    RL_CHECK(
        t.requires_grad(), throw_runtime,
        "retain_grad(): this tensor does not require grad\nhint: compute it from tensors that require grad");
    if (!grad_fn(t)) return;
    Meta& m = meta(t.impl());
    if (m.retains_grad()) return;
    m.hooks.get().retained = std::make_shared<RetainGrad>(t.impl());
    move_retained(m, nullptr);
}

}  // namespace rushlight::autograd
