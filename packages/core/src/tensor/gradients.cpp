#include "rushlight/gradients.h"

#include <algorithm>
#include <atomic>

namespace rushlight {
namespace {
constinit std::atomic<const GradientFunctions*> provider{nullptr};
}

void set_gradient_functions(const GradientFunctions& functions) { provider.store(&functions); }

void run_backward(TensorList outputs, TensorList gradients, TensorList inputs, bool retain_graph,
                  bool create_graph) {
    const GradientFunctions* functions = provider.load(std::memory_order_acquire);
    RL_CHECK(
        functions, throw_runtime,
        "backward: no autograd package is loaded\n"
        "hint: load librushlight_autograd.so and call rl_autograd_initialize(), or install rushlight-autograd");
    functions->backward(outputs, gradients, inputs, retain_graph, create_graph);
}

void set_gradient(const Tensor& t, const Tensor& g) {
    if (!g.defined()) return t.impl()->set_grad(nullptr);
    RL_CHECK(!g.is_same(t), throw_runtime, "a tensor cannot be its own grad");
    RL_CHECK(g.dtype() == t.dtype() && g.device() == t.device(), throw_runtime,
             "grad must have the tensor's dtype and device (%s on %s), got %s on %s", name(t.dtype()),
             name(t.device()).c_str(), name(g.dtype()), name(g.device()).c_str());
    RL_CHECK(std::equal(g.sizes().begin(), g.sizes().end(), t.sizes().begin(), t.sizes().end()),
             throw_runtime, "grad must have the tensor's shape %s, got %s", to_string(t.sizes()).c_str(),
             to_string(g.sizes()).c_str());
    t.impl()->set_grad(Ref<TensorImpl>::share(g.impl()));
}

}  // namespace rushlight
