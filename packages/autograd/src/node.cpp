#include "rushlight/autograd/node.h"

#include <atomic>
#include <thread>

#include "growth.h"
#include "rushlight/allocator.h"
#include "rushlight/autograd/anomaly.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/caller_locks.h"
#include "rushlight/hooks.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clone.h"
#include "rushlight/sparse.h"

namespace rushlight::autograd {
namespace {
std::atomic<uint64_t> next_sequence{1};
}

void* allocate_node(size_t nbytes) { return cpu_allocate(nbytes); }
void release_node(void* node, size_t nbytes) noexcept { cpu_release(node, nbytes); }

namespace detail {
std::atomic<uint8_t> anomaly{0};
constinit thread_local uint64_t idle_edges = 0;
}  // namespace detail

std::mutex& hooks_mutex() {
    static std::mutex* mutex = new std::mutex;  // never destroyed: nodes may outlive static objects
    return *mutex;
}

Node::Node(const char* name, uint32_t num_results, uint32_t num_edges)
    : name_(name),
      sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)),
      num_results_(num_results),
      num_edges_(num_edges),
      site_(num_edges ? current_site() : 0),
      edges_(inline_edges_) {
    if (num_edges > kInlineEdges) edges_ = new Edge[num_edges];
    // Nodes recorded inside of a pass (create_graph, a recomputed function) save everything that a later pass over
    // them may need, so the wants() of the running node must not apply to them. As a consequence, the running node
    // also computes the gradients that are not needed.
    if (num_edges) detail::idle_edges = 0;
    if (num_edges && anomaly_is_on()) [[unlikely]]
        hooks().calls = current_calls();
    if (num_edges) report_node(sequence_);  // nodes of leaves belong to no operator and have no site
}

Node::~Node() {
    if (counted_.load(std::memory_order_relaxed)) [[unlikely]]
        Growth::forget(this);
    if (edges_ != inline_edges_) delete[] edges_;
}

void Node::resize_edges(uint32_t n) {
    Edge* fresh = n > kInlineEdges ? new Edge[n] : inline_edges_;
    if (fresh != edges_)
        for (uint32_t i = 0; i < std::min(n, num_edges_); ++i) fresh[i] = std::move(edges_[i]);
    if (edges_ != inline_edges_ && edges_ != fresh) delete[] edges_;
    edges_ = fresh;
    num_edges_ = n;
}

struct NodeAccess {
    static void end(Node* node) {
        if (!node->lives_on()) delete node;
    }
};

namespace {
// A stack of nodes. Up to 16 are stored in place, which is enough for most graphs.
class PendingNodes {
  public:
    void push(Node* node) {
        if (size_ < kFew) few_[size_++] = node;
        else more_.push_back(node);
    }
    Node* pop() {
        if (!more_.empty()) {
            Node* last = more_.back();
            more_.pop_back();
            return last;
        }
        return size_ ? few_[--size_] : nullptr;
    }

  private:
    static constexpr size_t kFew = 16;
    Node* few_[kFew];
    size_t size_ = 0;
    std::vector<Node*> more_;
};
}  // namespace

// Note [Release of deep graphs]
// Destroying a node releases its edges, which may destroy the nodes behind them, and so on through the whole
// depth of the graph. To keep the depth of the stack constant, nested destructions only add their node to a list, and
// the outermost destruction on the thread destroys the nodes of the list.
void Node::destroy(Node* node) {
    static constinit thread_local PendingNodes* pending RL_TLS_MODEL = nullptr;
    if (pending) {
        pending->push(node);
        return;
    }
    PendingNodes list;
    pending = &list;
    do NodeAccess::end(node);
    while ((node = list.pop()));
    pending = nullptr;
}

// Note [Passes share nodes]
// Passes of several threads may run through one graph. Passes that retain the graph only read saved tensors, and may run at
// the same time. A pass that uses the graph up claims each node before it runs the node, and waits for passes that are
// reading it; a later pass finds the node claimed and raises an error, as it would if the first pass had already finished.
// A pass that fails releases its claim on the node that failed: nodes that have run are used up, and the failed node and
// the nodes behind it are unchanged.
void Node::enter(bool last) {
    if (never_used_up_ || num_edges_ == 0) return;
    // A reading pass and a pass that uses the node up each announce themselves first and then check for the other, so
    // at least one of them detects the conflict.
    if (!last) {
        visitors_.fetch_add(1, std::memory_order_seq_cst);
        if (!claimed_.load(std::memory_order_seq_cst)) return;
        visitors_.fetch_sub(1, std::memory_order_release);
        fail_released();
    }
    if (claimed_.exchange(true, std::memory_order_seq_cst)) fail_released();
    while (visitors_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
}

void Node::leave(bool last, bool failed) noexcept {
    if (never_used_up_ || num_edges_ == 0) return;
    if (!last) visitors_.fetch_sub(1, std::memory_order_release);
    else if (failed) claimed_.store(false, std::memory_order_release);
}

void Node::fail_released() const {
    throw_runtime(
        "backward(): the graph of this output was used already, and the tensors saved by %s were freed\n"
        "hint: pass retain_graph=True to the first backward() if you need a second one",
        name().c_str());
}

AccumulateGrad::AccumulateGrad(Tensor variable)
    : Node("AccumulateGrad", 1, 0), variable_(std::move(variable)) {}

void AccumulateGrad::apply(std::span<Tensor> grads, std::span<Tensor>) {
    if (!grads[0].defined()) return;
    accumulate(grads[0]);
    Meta* m = meta_or_null(variable_.impl());
    Meta::Hooks* found = m ? m->hooks.get_or_null() : nullptr;
    if (!found) return;
    auto hooks = [found] {
        std::lock_guard lock(hooks_mutex());
        return found->post_accumulate;
    }();
    Tensor self = variable_;
    for (auto& hook : hooks) hook->call({&self, 1}, {});
}

void AccumulateGrad::accumulate(Tensor& grad) {
    TensorImpl* leaf = variable_.impl();
    RL_CHECK(
        std::equal(grad.sizes().begin(), grad.sizes().end(), leaf->sizes().begin(), leaf->sizes().end()) &&
            grad.dtype() == leaf->dtype() && grad.device() == leaf->device(),
        throw_runtime,
        "backward(): a gradient of shape %s, dtype %s and device %s was computed for a leaf of shape %s, "
        "dtype %s and device %s\n"
        "hint: correct the backward formula of the custom operator that computed this gradient",
        to_string(grad.sizes()).c_str(), rushlight::name(grad.dtype()),
        rushlight::name(grad.device()).c_str(), to_string(leaf->sizes()).c_str(),
        rushlight::name(leaf->dtype()), rushlight::name(leaf->device()).c_str());
    const KeptCallerLocks kept;
    std::lock_guard lock(adding_);
    Tensor existing = variable_.grad();
    if (!existing.defined()) {
        // The gradient is adopted without a copy only if nothing else refers to its memory, and its memory and layout
        // are the same as for a newly allocated gradient.
        bool ours = grad.impl()->use_count() == 1 && grad.impl()->storage()->use_count() == 1 &&
                    grad.impl()->storage()->kind() == StorageKind::Cached && grad.impl()->has(Flag::Dense) &&
                    !grad.impl()->storage()->read_only();
        if (!ours || grad_mode()) grad = ours ? grad : ops::clone(grad);
        leaf->set_grad(Ref<TensorImpl>::share(grad.impl()));
    } else if (grad_mode() || is_sparse(existing)) {
        // The sum of a sparse gradient and another gradient may be sparse or dense, so it cannot be computed in place.
        leaf->set_grad(Ref<TensorImpl>::share(ops::add(existing, grad).impl()));
    } else {
        ops::add_(existing, grad);
    }
}

void NotDifferentiable::apply(std::span<Tensor>, std::span<Tensor>) {
    throw_runtime("backward(): the derivative of '%s' is not implemented", op_.c_str());
}

}  // namespace rushlight::autograd
