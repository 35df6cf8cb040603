#include "rushlight/autograd/engine.h"

#include "growth.h"
#include "pass.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/ones_like.h"

namespace rushlight::autograd {

namespace detail {
constinit thread_local bool parallel_branches = false;
std::atomic<bool> device_threads{true};
}  // namespace detail

uint64_t current_pass_id() { return current_pass ? current_pass->id() : 0; }

bool current_pass_runs(Node* node) { return current_pass && current_pass->runs(node); }

void queue_callback(std::function<void()> callback) {
    Pass* pass = current_pass;
    RL_CHECK(pass, throw_runtime,
             "queue_callback(): no backward pass is running on this thread\n"
             "hint: call queue_callback() in a hook");
    while (pass->outer()) pass = pass->outer();
    pass->queue_callback(std::move(callback));
}

std::vector<Tensor> run_backward(std::span<const Root> roots, std::span<const Edge> inputs,
                                 const BackwardOptions& options) {
    GradMode mode(options.create_graph);
    // Gradients of tensor subclasses are computed as plain tensors, so the stage Python is off. Formulas may broadcast,
    // so the stage Strict is off.
    StagesOff overrides(bit(Stage::Python) | bit(Stage::Strict));
    Pass pass(options);
    for (const Root& root : roots) pass.add_root(root.edge, root.grad);
    pass.discover();
    if (!inputs.empty()) pass.restrict_to(inputs);
    pass.run();
    pass.join_streams();
    pass.run_callbacks();
    return pass.take_captures();
}

namespace {

// Returns the initial gradient of an output, in the output's shape.
Tensor first_gradient(const Tensor& output, Tensor grad, size_t i) {
    if (!grad.defined()) {
        RL_CHECK(output.numel() == 1, throw_runtime,
                 "backward(): grad can be created implicitly only for outputs of one element, output %zu has "
                 "shape %s\n"
                 "hint: reduce the output with sum() or mean(), or pass gradient=",
                 i, to_string(output.sizes()).c_str());
        RL_CHECK(!is_complex(output.dtype()), throw_runtime,
                 "backward(): grad can be created implicitly only for real outputs, output %zu is %s\n"
                 "hint: take abs() or the real part of the output, or pass gradient=",
                 i, name(output.dtype()));
        return ops::ones_like(output);
    }
    RL_CHECK(
        std::equal(grad.sizes().begin(), grad.sizes().end(), output.sizes().begin(), output.sizes().end()),
        throw_runtime,
        "backward(): the gradient of output %zu has shape %s, but the output has shape %s\n"
        "hint: call expand() on the gradient: backward() does not broadcast it",
        i, to_string(grad.sizes()).c_str(), to_string(output.sizes()).c_str());
    RL_CHECK(is_differentiable(grad.dtype()), throw_runtime,
             "backward(): the gradient of output %zu must be of a floating dtype, got %s\n"
             "hint: convert the gradient to the dtype of the output, %s",
             i, name(grad.dtype()), name(output.dtype()));
    RL_CHECK(!is_complex(grad.dtype()) || is_complex(output.dtype()), throw_runtime,
             "backward(): the gradient of output %zu has dtype %s, but the output has dtype %s\n"
             "hint: pass the real part of the gradient",
             i, name(grad.dtype()), name(output.dtype()));
    RL_CHECK(grad.device() == output.device(), throw_runtime,
             "backward(): the gradient of output %zu is on %s, but the output is on %s", i,
             name(grad.device()).c_str(), name(output.device()).c_str());
    return grad.dtype() == output.dtype() ? grad : ops::_to_copy(grad, output.dtype(), std::nullopt);
}

// Accumulates the gradient of an input of backward() that is not a leaf.
void add_to_grad(const Tensor& input, const Tensor& grad, bool create_graph) {
    GradMode mode(create_graph);
    Tensor sum = input.grad().defined() ? ops::add(input.grad(), grad) : grad;
    input.impl()->set_grad(Ref<TensorImpl>::share(sum.impl()));
}

// Called after a pass that has used the graph up. Reports roots that have owners other than the output tensors: such a
// root belongs to a larger graph, which can never be differentiated.
void look_for_holders(TensorList outputs, std::span<const Root> roots) {
    for (size_t i = 0; i < outputs.size(); ++i) {
        Node* node = roots[i].edge.node.get();
        if (!node->released()) continue;
        uint32_t known = 0;
        for (const Root& root : roots) known += root.edge.node.get() == node;
        for (const Tensor& output : outputs) {
            const Meta* m = meta_or_null(output.impl());
            known += m && m->grad_fn.get() == node;
        }
        if (node->use_count() > known) Growth::still_held(node);
    }
}

}  // namespace

Root root_of(const Tensor& output, Tensor grad, size_t i) {
    Edge edge = gradient_edge(output);
    RL_CHECK(edge, throw_runtime,
             "backward(): output %zu (shape %s) does not require grad and has no history\n"
             "hint: compute it from tensors that require grad, outside of no_grad, and without detach()",
             i, to_string(output.sizes()).c_str());
    return {std::move(edge), first_gradient(output, std::move(grad), i)};
}

Edge input_edge(const Tensor& input, size_t i) {
    RL_CHECK(needs_grad(input), throw_runtime,
             "grad(): input %zu (shape %s, %s) does not require grad\n"
             "hint: call requires_grad_() on it before the outputs are computed",
             i, to_string(input.sizes()).c_str(), name(input.dtype()));
    return gradient_edge(input);
}

std::vector<Tensor> run_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                 const BackwardOptions& options) {
    RL_CHECK(grads.empty() || grads.size() == outputs.size(), throw_runtime,
             "backward(): expected one gradient for each of the %zu outputs, got %zu gradients",
             outputs.size(), grads.size());
    std::vector<Root> roots;
    roots.reserve(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
        roots.push_back(root_of(outputs[i], grads.empty() ? Tensor() : grads[i], i));
    std::vector<Edge> edges;
    for (size_t i = 0; i < inputs.size(); ++i) edges.push_back(input_edge(inputs[i], i));
    std::vector<Tensor> result = run_backward(roots, edges, options);
    // The gradients of leaves, and of tensors that retain their gradients, were already accumulated during the pass.
    for (size_t i = 0; options.accumulate_grad && i < inputs.size(); ++i)
        if (result[i].defined() && !inputs[i].is_leaf() && !meta(inputs[i].impl()).retains_grad())
            add_to_grad(inputs[i], result[i], options.create_graph);
    if (!options.retain_graph) look_for_holders(outputs, roots);
    return result;
}

void backward(const Tensor& output, const Tensor& grad, bool retain_graph, bool create_graph) {
    BackwardOptions options;
    options.retain_graph = retain_graph || create_graph;
    options.create_graph = create_graph;
    run_backward(TensorList(&output, 1), grad.defined() ? TensorList(&grad, 1) : TensorList(), {}, options);
}

}  // namespace rushlight::autograd
