#include "rushlight/autograd/engine.h"

#include <algorithm>

#include "rushlight/autograd/anomaly.h"
#include "rushlight/hooks.h"
#include "rushlight/interrupt.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/isnan.h"
#include "rushlight/ops/ones_like.h"

namespace rushlight::autograd {
namespace {

// A node's part in one backward pass.
struct Task {
    Node* node;
    uint32_t dependencies = 0;  // edges that have yet to deliver
    uint32_t first_grad;        // its gradients in Pass::grads
    bool wanted = true;         // leads to an input, or nothing was said of inputs
    bool captured = false;      // is an input
    bool reached = false;       // is one of the roots, or got a gradient
};

// Pointer to number, open addressing: one pass builds it, so nothing is ever removed.
class TaskTable {
  public:
    TaskTable() : slots_(kInitial, kEmpty) {}

    // The number of the node's task, or `next` when it is new.
    uint32_t find_or_insert(Node* node, const std::vector<Task>& tasks, uint32_t next) {
        if (2 * (tasks.size() + 1) > slots_.size()) grow(tasks);
        size_t at = hash(node) & (slots_.size() - 1);
        while (slots_[at] != kEmpty) {
            if (tasks[slots_[at]].node == node) return slots_[at];
            at = (at + 1) & (slots_.size() - 1);
        }
        slots_[at] = next;
        return next;
    }
    uint32_t find(Node* node, const std::vector<Task>& tasks) const {
        size_t at = hash(node) & (slots_.size() - 1);
        while (slots_[at] != kEmpty && tasks[slots_[at]].node != node) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    static constexpr uint32_t kEmpty = ~0u;

  private:
    static constexpr size_t kInitial = 64;
    static size_t hash(Node* node) {
        return (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9e3779b97f4a7c15ull >> 20;
    }
    void grow(const std::vector<Task>& tasks) {
        std::vector<uint32_t> fresh(slots_.size() * 4, kEmpty);
        for (uint32_t i = 0; i < tasks.size(); ++i) {
            size_t at = hash(tasks[i].node) & (fresh.size() - 1);
            while (fresh[at] != kEmpty) at = (at + 1) & (fresh.size() - 1);
            fresh[at] = i;
        }
        slots_.swap(fresh);
    }
    std::vector<uint32_t> slots_;
};

class Pass {
  public:
    explicit Pass(const BackwardOptions& options) : options_(options) {}

    void add_root(const Edge& edge, Tensor grad) {
        uint32_t task = task_of(edge.node.get());
        roots_.push_back(edge.node);
        deliver(task, edge.index, std::move(grad));
    }

    // Finds all nodes behind the roots and counts who delivers to whom.
    void discover() {
        for (uint32_t at = 0; at < tasks_.size(); ++at) {
            for (Edge& edge : tasks_[at].node->edges()) {
                if (!edge) continue;
                uint32_t next = task_of(edge.node.get());
                ++tasks_[next].dependencies;
            }
        }
    }

    // Only nodes on a way to `inputs` run. Consumers have greater sequence numbers than what they consume.
    void restrict_to(std::span<const Edge> inputs) {
        for (Task& task : tasks_) task.wanted = false;
        captures_.resize(inputs.size());
        for (size_t i = 0; i < inputs.size(); ++i) {
            uint32_t t = inputs[i] ? table_.find(inputs[i].node.get(), tasks_) : TaskTable::kEmpty;
            captures_[i] = {t, inputs[i].index, Tensor(), false};
            if (t != TaskTable::kEmpty) tasks_[t].captured = true;
        }
        std::vector<uint32_t> order(tasks_.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(),
                  [&](uint32_t a, uint32_t b) { return rank(tasks_[a]) < rank(tasks_[b]); });
        for (uint32_t i : order)
            for (Edge& edge : tasks_[i].node->edges())
                if (edge) {
                    const Task& next = tasks_[table_.find(edge.node.get(), tasks_)];
                    tasks_[i].wanted |= next.wanted || next.captured;
                }
        restricted_ = true;
    }

    void run() {
        for (uint32_t i = 0; i < tasks_.size(); ++i)
            if (tasks_[i].dependencies == 0) push(i);
        while (!ready_.empty()) {
            std::pop_heap(ready_.begin(), ready_.end(), [&](uint32_t a, uint32_t b) { return later(b, a); });
            uint32_t i = ready_.back();
            ready_.pop_back();
            execute(i);
        }
    }

    std::vector<Tensor> take_captures() {
        std::vector<Tensor> grads;
        for (Capture& c : captures_) grads.push_back(std::move(c.grad));
        return grads;
    }

  private:
    struct Capture {
        uint32_t task;
        uint32_t index;
        Tensor grad;
        bool done;
    };

    // Accumulators run as soon as they can: it frees the gradients that wait in them.
    static uint64_t rank(const Task& t) { return t.node->edges().empty() ? 0 : t.node->sequence(); }
    bool later(uint32_t a, uint32_t b) const {
        bool leaf_a = tasks_[a].node->edges().empty(), leaf_b = tasks_[b].node->edges().empty();
        if (leaf_a != leaf_b) return leaf_a;
        return tasks_[a].node->sequence() > tasks_[b].node->sequence();
    }
    void push(uint32_t i) {
        ready_.push_back(i);
        std::push_heap(ready_.begin(), ready_.end(), [&](uint32_t a, uint32_t b) { return later(b, a); });
    }

    uint32_t task_of(Node* node) {
        auto next = static_cast<uint32_t>(tasks_.size());
        uint32_t found = table_.find_or_insert(node, tasks_, next);
        if (found == next) {
            tasks_.push_back({node, 0, static_cast<uint32_t>(grads_.size())});
            grads_.resize(grads_.size() + node->num_results());
        }
        return found;
    }

    void deliver(uint32_t task, uint32_t index, Tensor grad) {
        if (!grad.defined()) return;
        Task& t = tasks_[task];
        t.reached = true;
        Tensor& slot = grads_[t.first_grad + index];
        if (!slot.defined()) {
            slot = std::move(grad);
            return;
        }
        TensorImpl* impl = slot.impl();
        bool ours = !options_.create_graph && impl->use_count() == 1 && impl->storage()->use_count() == 1 &&
                    impl->has(Flag::Dense) && slot.dtype() == grad.dtype() && !impl->storage()->read_only() &&
                    impl->storage()->kind() == StorageKind::Cached;
        if (ours) ops::add_(slot, grad);
        else slot = ops::add(slot, grad);
    }

    void execute(uint32_t at) {
        Node* node = tasks_[at].node;
        // The pass keeps the node: its last owner may be an edge that is dropped on the way.
        Ref<Node> hold = Ref<Node>::share(node);
        std::span<Tensor> grads(grads_.data() + tasks_[at].first_grad, node->num_results());
        Node::Hooks* hooks = node->hooks_or_null();
        bool reached = tasks_[at].reached;
        if (reached) run_pre_hooks(node, hooks, grads);
        if (restricted_) capture(at, grads);

        size_t n = node->edges().size();
        Tensor inline_out[4];
        std::vector<Tensor> more_out;
        if (n > 4) more_out.resize(n);
        std::span<Tensor> out(n > 4 ? more_out.data() : inline_out, n);
        // A leaf runs when its `grad` is to be accumulated; grad() gives what arrives to its caller instead.
        bool leaf_runs = n == 0 && tasks_[at].captured && options_.accumulate_grad;
        if (reached && (tasks_[at].wanted || leaf_runs)) {
            std::vector<Tensor> given;
            if (hooks && !hooks->post.empty()) given.assign(grads.begin(), grads.end());
            {
                NodeScope scope(node->sequence(), [&] { return node->name(); });
                if (anomaly_is_on()) [[unlikely]]
                    apply_watched(node, grads, out);
                else node->apply(grads, out);
            }
            if (hooks)
                for (auto& hook : hooks->post) hook->call(out, given);
            if (!options_.retain_graph) node->release_saved();
        }
        // Drop the gradients that came in: they may be the last reference to large memory. `grads` may have moved.
        for (uint32_t k = 0; k < node->num_results(); ++k) grads_[tasks_[at].first_grad + k] = Tensor();
        for (size_t k = 0; k < n; ++k) {
            Edge& edge = node->edges()[k];
            if (!edge) continue;
            uint32_t next = table_.find(edge.node.get(), tasks_);
            deliver(next, edge.index, std::move(out[k]));
            if (--tasks_[next].dependencies == 0) push(next);
        }
        if (++executed_ % 4 == 0) check_interrupted();
    }

    // Anomaly mode: an error tells what calls recorded the node, and NaN is one.
    static void apply_watched(Node* node, std::span<Tensor> grads, std::span<Tensor> out) {
        auto calls = [&] {
            const Node::Hooks* hooks = node->hooks_or_null();
            return hooks && !hooks->calls.empty()
                       ? "\nThe forward call that recorded it (most recent call last):\n" + hooks->calls
                       : "\nhint: it was recorded before anomaly mode was on, so the forward call is not known";
        };
        try {
            node->apply(grads, out);
        } catch (const Error& error) { throw Error(error.kind(), error.what() + calls()); }
        if (!anomaly_checks_nan()) return;
        for (size_t i = 0; i < out.size(); ++i) {
            if (!out[i].defined() || !is_differentiable(out[i].dtype())) continue;
            Tensor nan = ops::any(ops::isnan(make_alias(out[i])));
            if (!*nan.data<bool>()) continue;
            throw_runtime("Function '%s' returned nan values in its %zuth output.%s", node->name().c_str(), i,
                          calls().c_str());
        }
    }

    void run_pre_hooks(Node* node, Node::Hooks* hooks, std::span<Tensor> grads) {
        if (auto* leaf = dynamic_cast_leaf(node)) {
            if (Meta* m = meta_or_null(leaf->variable().impl()); m && !m->hooks.empty()) {
                auto list = m->hooks;
                for (auto& hook : list) hook->call(grads.subspan(0, 1), {});
            }
        }
        if (!hooks) return;
        for (auto& [index, hook] : hooks->tensor_hooks) hook->call(grads.subspan(index, 1), {});
        for (auto& hook : hooks->pre) hook->call(grads, {});
    }
    static AccumulateGrad* dynamic_cast_leaf(Node* node) {
        return node->edges().empty() ? dynamic_cast<AccumulateGrad*>(node) : nullptr;
    }

    void capture(uint32_t at, std::span<Tensor> grads) {
        for (Capture& c : captures_)
            if (c.task == at) c.grad = grads[c.index];
    }

    const BackwardOptions& options_;
    std::vector<Task> tasks_;
    std::vector<Tensor> grads_;
    std::vector<uint32_t> ready_;
    std::vector<Ref<Node>> roots_;
    std::vector<Capture> captures_;
    TaskTable table_;
    uint64_t executed_ = 0;
    bool restricted_ = false;
};

}  // namespace

std::vector<Tensor> run_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                 const BackwardOptions& options) {
    RL_CHECK(grads.empty() || grads.size() == outputs.size(), throw_runtime,
             "backward(): %zu outputs need as many gradients, got %zu", outputs.size(), grads.size());
    GradMode mode(options.create_graph);
    // Gradients of a subclass are plain tensors, and formulas broadcast as they like.
    StagesOff overrides(bit(Stage::Python) | bit(Stage::Strict));
    Pass pass(options);
    for (size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        Edge edge = gradient_edge(output);
        RL_CHECK(edge, throw_runtime,
                 "backward(): output %zu (shape %s) does not require grad and has no history\n"
                 "hint: was it computed under no_grad, detached, or from tensors without requires_grad?",
                 i, to_string(output.sizes()).c_str());
        Tensor grad = grads.empty() ? Tensor() : grads[i];
        if (!grad.defined()) {
            RL_CHECK(
                output.numel() == 1, throw_runtime,
                "backward(): grad can be created implicitly only for outputs of one element, output %zu has shape "
                "%s\nhint: reduce it (sum, mean), or pass gradient=",
                i, to_string(output.sizes()).c_str());
            RL_CHECK(!is_complex(output.dtype()), throw_runtime,
                     "backward(): grad can be created implicitly only for real outputs, output %zu is %s\n"
                     "hint: take its abs() or a part, or pass gradient=",
                     i, name(output.dtype()));
            grad = ops::ones_like(output);
        }
        RL_CHECK(std::equal(grad.sizes().begin(), grad.sizes().end(), output.sizes().begin(),
                            output.sizes().end()),
                 throw_runtime, "backward(): the gradient of output %zu has shape %s, the output has %s", i,
                 to_string(grad.sizes()).c_str(), to_string(output.sizes()).c_str());
        RL_CHECK(is_differentiable(grad.dtype()), throw_runtime,
                 "backward(): the gradient of output %zu must be of a floating dtype, got %s", i,
                 name(grad.dtype()));
        pass.add_root(edge, std::move(grad));
    }
    pass.discover();
    if (!inputs.empty()) {
        std::vector<Edge> edges;
        for (size_t i = 0; i < inputs.size(); ++i) {
            RL_CHECK(needs_grad(inputs[i]), throw_runtime,
                     "grad(): input %zu (shape %s) does not require grad", i,
                     to_string(inputs[i].sizes()).c_str());
            edges.push_back(gradient_edge(inputs[i]));
        }
        pass.restrict_to(edges);
    }
    pass.run();
    return pass.take_captures();
}

void backward(const Tensor& output, const Tensor& grad, bool retain_graph, bool create_graph) {
    BackwardOptions options;
    options.retain_graph = retain_graph || create_graph;
    options.create_graph = create_graph;
    run_backward({&output, 1}, grad.defined() ? TensorList(&grad, 1) : TensorList(), {}, options);
}

}  // namespace rushlight::autograd
