#include "pass.h"

#include <algorithm>
#include <optional>

#include "device_thread.h"
#include "rushlight/autograd/anomaly.h"
#include "rushlight/hooks.h"
#include "rushlight/interrupt.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/isnan.h"
#include "rushlight/ops/to.h"
#include "rushlight/streams.h"

namespace rushlight::autograd {

constinit thread_local Pass* current_pass = nullptr;

namespace {
std::atomic<uint64_t> next_pass{1};

// Sets a variable of the thread for a scope.
template <class T>
class Set {
  public:
    Set(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
    ~Set() { variable_ = before_; }
    Set(const Set&) = delete;

  private:
    T& variable_;
    T before_;
};
}  // namespace

Pass::Pass(const BackwardOptions& options)
    : options_(options),
      id_(next_pass.fetch_add(1, std::memory_order_relaxed)),
      device_threads_(device_threads()),
      several_streams_(rushlight::detail::several_streams.load(std::memory_order_relaxed)),
      streams_(current_streams()),
      outer_(current_pass) {
    if (DeviceThread* here = DeviceThread::current()) home_ = here->device();
}
Pass::~Pass() = default;

void Pass::queue_callback(std::function<void()> callback) {
    std::lock_guard lock(mutex_);
    callbacks_.push_back(std::move(callback));
}

void Pass::run_callbacks() {
    // A callback may queue another one.
    Set current(current_pass, this);
    for (size_t i = 0;; ++i) {
        std::function<void()> next;
        {
            std::lock_guard lock(mutex_);
            if (i == callbacks_.size()) return callbacks_.clear();
            next = std::move(callbacks_[i]);
        }
        next();
    }
}

void Pass::add_root(const Edge& edge, Tensor grad) {
    uint32_t task = task_of(edge.node.get());
    roots_.push_back(edge.node);
    deliver(task, edge.index, std::move(grad));
}

void Pass::discover() {
    for (uint32_t at = 0; at < tasks_.size(); ++at) {
        for (Edge& edge : tasks_[at].node->edges()) {
            if (!edge) continue;
            uint32_t next = task_of(edge.node.get());
            ++tasks_[next].dependencies;
        }
    }
}

void Pass::restrict_to(std::span<const Edge> inputs) {
    for (Task& task : tasks_) task.wanted = false;
    captures_.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        uint32_t t = inputs[i] ? table_.find(inputs[i].node.get(), tasks_) : TaskTable::kEmpty;
        captures_[i] = {t, inputs[i].index, Tensor()};
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

void Pass::run() {
    Set current(current_pass, this);
    Set idle(detail::idle_edges, uint64_t{0});
    for (uint32_t i = 0; i < tasks_.size(); ++i)
        if (tasks_[i].dependencies == 0) push(ready_, i);
    if (parallel_branches()) return run_on_threads(*this, true);
    masks_handed_on_ = !options_.create_graph && !anomaly_is_on();
    while (!ready_.empty()) {
        uint32_t task = pop(ready_);
        if (is_elsewhere(device_of(task))) [[unlikely]] {
            push(ready_, task);
            masks_handed_on_ = false;
            return run_on_threads(*this, false);
        }
        execute(task);
    }
}

std::vector<Tensor> Pass::take_captures() {
    std::vector<Tensor> grads;
    for (Capture& c : captures_) grads.push_back(std::move(c.grad));
    return grads;
}

bool Pass::runs(Node* node) const {
    uint32_t t = table_.find(node, tasks_);
    return t != TaskTable::kEmpty && (tasks_[t].wanted || tasks_[t].captured);
}

bool Pass::later(uint32_t a, uint32_t b) const {
    bool leaf_a = is_leaf(a), leaf_b = is_leaf(b);
    if (leaf_a != leaf_b) return leaf_a;
    return tasks_[a].node->sequence() > tasks_[b].node->sequence();
}
void Pass::push(std::vector<uint32_t>& queue, uint32_t task) const {
    queue.push_back(task);
    std::push_heap(queue.begin(), queue.end(), [&](uint32_t a, uint32_t b) { return later(b, a); });
}
uint32_t Pass::pop(std::vector<uint32_t>& queue) const {
    std::pop_heap(queue.begin(), queue.end(), [&](uint32_t a, uint32_t b) { return later(b, a); });
    uint32_t task = queue.back();
    queue.pop_back();
    return task;
}
Device Pass::device_of(uint32_t task) const {
    const Tensor* grads = grads_.data() + tasks_[task].first_grad;
    for (size_t i = 0, n = tasks_[task].node->num_results(); i < n; ++i)
        if (grads[i].defined()) return grads[i].device();
    return {};
}

uint32_t Pass::task_of(Node* node) {
    auto next = static_cast<uint32_t>(tasks_.size());
    uint32_t found = table_.find_or_insert(node, tasks_, next);
    if (found == next) {
        tasks_.push_back({node, 0, static_cast<uint32_t>(grads_.size())});
        grads_.resize(grads_.size() + node->num_results());
    }
    return found;
}

// Note [Streams of nodes]
// A node runs on the stream on which its operator ran, so branches of a model that ran at the same time also do so in
// the backward pass, and saved tensors are read on the stream on which they were computed. A gradient is added up on the
// stream of the node that receives it. This stream first waits for the stream on which the gradient was computed.
// Accumulators run on the caller's stream. After the pass, the caller's streams wait for all streams on which nodes ran,
// so the caller can use the gradients like other results. While a node runs, the caller's streams are current for all
// devices other than the node's device.
StreamChoice Pass::stream_of(uint32_t task, Device device) const {
    if (is_leaf(task)) return {device, callers_stream(device)};
    const Node::Hooks* hooks = tasks_[task].node->hooks_or_null();
    return {device, hooks && hooks->stream_device == device ? hooks->stream : nullptr};
}

void* Pass::callers_stream(Device device) const {
    for (const StreamChoice& choice : streams_)
        if (choice.device == device) return choice.stream;
    return nullptr;
}

void Pass::wait_for(uint32_t task, const Tensor& grad) {
    if (!several_streams_) [[likely]]
        return;
    const StreamChoice next = stream_of(task, grad.device());
    order_streams(next.device, current_stream(next.device), next.device, next.stream);
    if (next.stream == callers_stream(next.device)) return;
    std::lock_guard lock(mutex_);
    if (!std::ranges::count(joined_streams_, next)) joined_streams_.push_back(next);
}

void Pass::join_streams() {
    for (auto [device, stream] : joined_streams_)
        order_streams(device, stream, device, callers_stream(device));
}

void Pass::deliver(uint32_t task, uint32_t index, Tensor grad) {
    if (!grad.defined()) return;
    tasks_[task].reached = true;
    wait_for(task, grad);
    add_to(task, grads_[tasks_[task].first_grad + index], std::move(grad));
}

void Pass::add_to(uint32_t task, Tensor& slot, Tensor grad) const {
    if (!slot.defined()) {
        slot = std::move(grad);
        return;
    }
    std::optional<StreamScope> scope;
    if (several_streams_) [[unlikely]]
        scope.emplace(stream_of(task, slot.device()));
    TensorImpl* impl = slot.impl();
    bool ours = !options_.create_graph && impl->use_count() == 1 && impl->storage()->use_count() == 1 &&
                impl->has(Flag::Dense) && slot.dtype() == grad.dtype() && !impl->storage()->read_only() &&
                impl->storage()->kind() == StorageKind::Cached;
    if (ours && !is_batched(grad)) ops::add_(slot, grad);
    else slot = ops::add(slot, grad);
}

// Converts a gradient to the dtype of its leaf. A pass inside of autocast computes products in a smaller dtype, even if
// the forward pass used the leaf outside of autocast.
static void fit_to_leaf(Node* node, Tensor& grad) {
    const auto* leaf = dynamic_cast<const AccumulateGrad*>(node);
    if (!leaf || !grad.defined()) return;
    const DType wanted = leaf->variable().dtype();
    if (is_floating(grad.dtype()) && is_floating(wanted) && grad.dtype() != wanted)
        grad = ops::_to_copy(grad, wanted);
}

void Pass::run_task(uint32_t at, std::span<Tensor> out) {
    Node* node = tasks_[at].node;
    std::span<Tensor> grads(grads_.data() + tasks_[at].first_grad, node->num_results());
    const bool reached = tasks_[at].reached, wanted = tasks_[at].wanted;
    if (dispatch_state.on & bit(Stage::Autocast) && is_leaf(at)) [[unlikely]]
        fit_to_leaf(node, grads[0]);
    if (reached && (wanted || tasks_[at].captured)) run_pre_hooks(node, node->hooks_or_null(), grads);
    if (restricted_) capture(at, grads);
    // A leaf runs if its `grad` is to be accumulated; grad() returns the arriving gradient to its caller
    // instead.
    bool leaf_runs = out.empty() && tasks_[at].captured && options_.accumulate_grad;
    if (reached && (wanted || leaf_runs)) apply(at, grads, out);
    // Release the incoming gradients, because they may hold the last reference to large memory.
    for (Tensor& grad : grads) grad = Tensor();
}

void Pass::execute(uint32_t at) {
    tasks_[at].done = true;
    Node* node = tasks_[at].node;
    // The pass owns the node meanwhile, because its last owner may be an edge that is released during the pass.
    Ref<Node> hold = Ref<Node>::share(node);
    std::optional<StreamScope> scope;
    if (several_streams_) [[unlikely]]
        scope.emplace(stream_of(at, device_of(at)));
    size_t n = node->edges().size();
    Results out(n);
    run_task(at, out);
    for (size_t k = 0; k < n; ++k) {
        Edge& edge = node->edges()[k];
        if (!edge) continue;
        uint32_t next = table_.find(edge.node.get(), tasks_);
        deliver(next, edge.index, std::move(out[k]));
        if (--tasks_[next].dependencies == 0) push(ready_, next);
    }
    if (++executed_ % 4 == 0) check_interrupted();
}

namespace {

// Anomaly mode: errors name the calls that recorded the node, and NaN is an error.
void apply_watched(Node* node, std::span<Tensor> grads, std::span<Tensor> out) {
    auto calls = [&] {
        const Node::Hooks* hooks = node->hooks_or_null();
        return hooks && !hooks->calls.empty()
                   ? "\nThe forward call that recorded it (most recent call last):\n" + hooks->calls
                   : "\nhint: enable anomaly mode before the forward call to see the call here";
    };
    try {
        node->apply(grads, out);
    } catch (const Error& error) { throw Error(error.kind(), error.what() + calls()); }
    if (!anomaly_checks_nan()) return;
    for (size_t i = 0; i < out.size(); ++i) {
        if (!out[i].defined() || !is_differentiable(out[i].dtype())) continue;
        if (out[i].device().type == DeviceType::Meta) continue;
        const Tensor nan = ops::to(ops::any(ops::isnan(make_alias(out[i]))), Device());
        if (!*nan.data<bool>()) continue;
        throw_runtime("Function '%s' returned nan values in its %zuth output.%s", node->name().c_str(), i,
                      calls().c_str());
    }
}

// Copies a list of hooks. Hooks that are registered or removed while the copy is used, possibly by a hook, change
// only the original list.
template <class List>
List copy_of(const List& list) {
    std::lock_guard lock(hooks_mutex());
    return list;
}

AccumulateGrad* leaf_or_null(Node* node) {
    return node->edges().empty() ? dynamic_cast<AccumulateGrad*>(node) : nullptr;
}

}  // namespace

void Pass::apply(uint32_t at, std::span<Tensor> grads, std::span<Tensor> out) {
    Node* node = tasks_[at].node;
    std::vector<Tensor> given;
    std::vector<std::shared_ptr<Hook>> post;
    if (Node::Hooks* hooks = node->hooks_or_null()) post = copy_of(hooks->post);
    if (!post.empty()) given.assign(grads.begin(), grads.end());
    const bool last = !options_.retain_graph;
    node->enter(last);
    try {
        Set idle(detail::idle_edges, restricted_ ? idle_edges(at) : 0);
        NodeScope scope(node->sequence(), [&] { return node->name(); });
        if (anomaly_is_on()) [[unlikely]]
            apply_watched(node, grads, out);
        else if (const auto mask = std::move(tasks_[at].mask)) node->apply_masked(*mask, grads, out);
        else if (!hand_on_mask(at, grads, out)) node->apply(grads, out);
    } catch (...) {
        node->leave(last, true);
        throw;
    }
    if (last) node->release_saved();
    node->leave(last, false);
    for (auto& hook : post) hook->call(out, given);
}

// Note [Masks]
// The derivative of relu, hardtanh and relu6 is a mask: 1 or 0 for each element. Batch normalization often precedes
// them, and the backward kernel of batch normalization reads the gradient of its result in any case. So the node of
// the batch normalization receives the mask and the gradient that has not been multiplied by it. The product is then
// never written to memory. This is done only if the product is not observable: there is no hook or capture between
// the two nodes, no other gradient is added, and no graph of the pass itself is recorded.
bool Pass::hand_on_mask(uint32_t at, std::span<Tensor> grads, std::span<Tensor> out) {
    if (!masks_handed_on_) return false;
    Node* node = tasks_[at].node;
    if (node->edges().size() != 1 || !node->edges()[0] || node->hooks_or_null()) return false;
    Node* next = node->edges()[0].node.get();
    if (!next->takes_mask() || next->hooks_or_null()) return false;
    Task& task = tasks_[table_.find(next, tasks_)];
    if (task.dependencies != 1 || task.reached || task.captured || !task.wanted) return false;
    const Tensor& grad = grads[0];
    auto mask = std::make_unique<ActivationMask>();
    if (!grad.defined() || grad.device().type != DeviceType::CPU || !node->mask(*mask)) return false;
    if (mask->activation.dtype() != grad.dtype()) return false;
    task.mask = std::move(mask);
    out[0] = std::move(grads[0]);
    return true;
}

// Returns the bits of the edges whose gradients lead to none of the inputs.
uint64_t Pass::idle_edges(uint32_t at) const {
    uint64_t idle = 0;
    std::span<Edge> edges = tasks_[at].node->edges();
    bool rest_idle = edges.size() > 63;
    for (size_t k = 0; k < edges.size(); ++k) {
        if (!edges[k]) continue;
        const Task& next = tasks_[table_.find(edges[k].node.get(), tasks_)];
        bool wanted = next.wanted || next.captured;
        if (k < 63) idle |= uint64_t{!wanted} << k;
        else rest_idle &= !wanted;
    }
    return idle | uint64_t{rest_idle} << 63;
}

void Pass::run_pre_hooks(Node* node, Node::Hooks* hooks, std::span<Tensor> grads) {
    if (auto* leaf = leaf_or_null(node)) {
        const Meta* m = meta_or_null(leaf->variable().impl());
        if (Meta::Hooks* of_leaf = m ? m->hooks.get_or_null() : nullptr)
            for (auto& hook : copy_of(of_leaf->pre)) hook->call(grads.subspan(0, 1), {});
    }
    if (!hooks) return;
    for (auto& [index, hook] : copy_of(hooks->tensor_hooks)) hook->call(grads.subspan(index, 1), {});
    for (auto& [index, hook] : copy_of(hooks->retained)) hook->call(grads.subspan(index, 1), {});
    for (auto& hook : copy_of(hooks->pre)) hook->call(grads, {});
}

void Pass::capture(uint32_t at, std::span<Tensor> grads) {
    if (!tasks_[at].captured) return;
    for (Capture& c : captures_)
        if (c.task == at) c.grad = grads[c.index];
}

}  // namespace rushlight::autograd
