#include "rushlight/autograd/node.h"

#include <atomic>
#include <thread>

#include "growth.h"
#include "rushlight/allocator.h"
#include "rushlight/autograd/anomaly.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/hooks.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clone.h"

namespace rushlight::autograd {
namespace {
std::atomic<uint64_t> next_sequence{1};
}

void* allocate_node(size_t nbytes) { return cpu_allocate(nbytes); }
void release_node(void* node, size_t nbytes) noexcept { cpu_release(node, nbytes); }

namespace detail {
std::atomic<uint8_t> anomaly{0};
thread_local uint64_t idle_edges = 0;
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
    if (num_edges && anomaly_is_on()) [[unlikely]]
        hooks().calls = current_calls();
    if (num_edges) report_node(sequence_);  // leaves belong to no operator, and have no site
}

Node::~Node() {
    if (state_.load(std::memory_order_relaxed) & kWatched) [[unlikely]]
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
    static void end(Node* node) { delete node; }
};

// Note [Release of deep graphs]
// A node's end drops its edges, which may end the nodes behind them, and so on for as long as the graph is deep. So the
// outermost end on a thread works off a list, and those inside only add to it: the stack stays flat.
void Node::destroy(Node* node) {
    static thread_local std::vector<Node*>* pending = nullptr;
    if (pending) {
        pending->push_back(node);
        return;
    }
    std::vector<Node*> list{node};
    pending = &list;
    while (!list.empty()) {
        Node* last = list.back();
        list.pop_back();
        NodeAccess::end(last);
    }
    pending = nullptr;
}

// Note [Passes share nodes]
// Passes of several threads may run through one graph. Those that retain it only read what a node saved, and may do so at
// the same time. One that uses the graph up claims each node before it runs it and waits for the readers inside; whoever
// comes later finds the node claimed and raises, as it would have a moment later. A pass that fails gives the claim on the
// node that failed back: nodes that have run are used up, that one and those behind it are as they were.
void Node::enter(bool last) {
    if (num_edges_ == 0) return;
    if (!last) {
        if (state_.fetch_add(kVisitor, std::memory_order_acquire) & kClaimed) {
            state_.fetch_sub(kVisitor, std::memory_order_release);
            fail_released();
        }
        return;
    }
    uint32_t before = state_.load(std::memory_order_relaxed);
    if (before & kNeverUsedUp) return;
    before = state_.fetch_or(kClaimed, std::memory_order_acquire);
    if (before & kClaimed) fail_released();
    while (before >= kVisitor) {
        std::this_thread::yield();
        before = state_.load(std::memory_order_acquire);
    }
}

void Node::leave(bool last, bool failed) noexcept {
    if (num_edges_ == 0) return;
    if (!last) state_.fetch_sub(kVisitor, std::memory_order_release);
    else if (failed) state_.fetch_and(~kClaimed, std::memory_order_release);
}

Node::Hooks& Node::hooks() {
    if (!hooks_) hooks_ = std::make_unique<Hooks>();
    return *hooks_;
}

void Node::fail_released() const {
    throw_runtime(
        "backward(): the graph of this output was used already, and what %s had saved was freed\n"
        "hint: pass retain_graph=True to the first backward() if you need a second one",
        name().c_str());
}

AccumulateGrad::AccumulateGrad(Tensor variable)
    : Node("AccumulateGrad", 1, 0), variable_(std::move(variable)) {}

namespace {
// 0: free, 1: held, 2: held, and somebody waits. Uncontended it costs two instructions, in every backward pass of a leaf.
class Turn {
  public:
    explicit Turn(std::atomic<uint32_t>& lock) : lock_(lock) {
        uint32_t seen = 0;
        if (lock_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
        while (lock_.exchange(2, std::memory_order_acquire) != 0) lock_.wait(2, std::memory_order_relaxed);
    }
    ~Turn() {
        if (lock_.exchange(0, std::memory_order_release) == 2) lock_.notify_one();
    }
    Turn(const Turn&) = delete;

  private:
    std::atomic<uint32_t>& lock_;
};
}  // namespace

void AccumulateGrad::apply(std::span<Tensor> grads, std::span<Tensor>) {
    if (!grads[0].defined()) return;
    accumulate(grads[0]);
    Meta* m = meta_or_null(variable_.impl());
    if (!m || m->post_accumulate.empty()) return;
    auto hooks = [m] {
        std::lock_guard lock(hooks_mutex());
        return m->post_accumulate;
    }();
    Tensor self = variable_;
    for (auto& hook : hooks) hook->call({&self, 1}, {});
}

void AccumulateGrad::accumulate(Tensor& grad) {
    Turn turn(lock_);
    TensorImpl* leaf = variable_.impl();
    Tensor existing = variable_.grad();
    if (!existing.defined()) {
        // Adopted without a copy only if nobody else sees this memory and it is laid out as a gradient of ours.
        bool ours = grad.impl()->use_count() == 1 && grad.impl()->storage()->use_count() == 1 &&
                    grad.impl()->storage()->kind() == StorageKind::Cached && grad.impl()->has(Flag::Dense) &&
                    !grad.impl()->storage()->read_only();
        if (!ours || grad_mode()) grad = ours ? grad : ops::clone(grad);
        leaf->set_grad(Ref<TensorImpl>::share(grad.impl()));
    } else if (grad_mode()) {
        leaf->set_grad(Ref<TensorImpl>::share(ops::add(existing, grad).impl()));
    } else {
        ops::add_(existing, grad);
    }
}

void NotDifferentiable::apply(std::span<Tensor>, std::span<Tensor>) {
    throw_runtime("backward(): the derivative of '%s' is not implemented", op_.c_str());
}

}  // namespace rushlight::autograd
