// The recorded graph: nodes that turn gradients of results into gradients of arguments.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "rushlight/autograd/lazy.h"
#include "rushlight/dispatch.h"
#include "rushlight/mutex.h"

namespace rushlight::autograd {

class Node;
class SavedTensor;

namespace detail {
// A bit for each edge of the node that runs on this thread. The bit is set if the pass does not need the edge's
// gradient. The last bit represents all further edges.
extern RL_API constinit thread_local uint64_t idle_edges RL_TLS_MODEL;
}  // namespace detail

/// The target of a gradient: the `index`-th result of the operator of `node`. A null node means that the
/// gradient is not needed.
struct Edge {
    Ref<Node> node;
    uint32_t index = 0;

    explicit operator bool() const { return static_cast<bool>(node); }
};

/// A function that is called with gradients and may replace them. It is owned by the node or the tensor on which it
/// is registered.
class Hook {
  public:
    virtual ~Hook() = default;
    /// If the hook runs before its node, `gradients` holds the gradients of the node's results. If the hook runs after
    /// its node, `gradients` holds the gradients of the node's arguments, and `given` holds those of the node's
    /// results.
    virtual void call(std::span<Tensor> gradients, std::span<const Tensor> given) = 0;
    /// Returns the callable for Python's garbage collector, or null.
    virtual void* object() const { return nullptr; }
    uint64_t id = 0;
};

/// The derivative of an activation that is 0 where its result is at most `low` or at least `high`, and 1 elsewhere. NaN
/// means that there is no limit. An infinite limit cannot mean this, because an infinite result would reach it.
struct ActivationMask {
    Tensor activation;  // the result
    double low = std::numeric_limits<double>::quiet_NaN();
    double high = std::numeric_limits<double>::quiet_NaN();
};

/// One recorded operator.
class RL_API Node : public RefCounted {
  public:
    /// `num_results` is the number of gradients that the node receives, and `num_edges` is the number of gradients that it
    /// returns.
    Node(const char* name, uint32_t num_results, uint32_t num_edges);
    static void destroy(Node* node);
    /// Unlike other objects, a node may get a new owner through a plain pointer (`try_retain`), so even the only
    /// owner must use the atomic operation.
    bool drop() const noexcept { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    /// Computes the gradients of the arguments from the gradients of the results. Absent gradients are
    /// undefined tensors.
    virtual void apply(std::span<Tensor> grads, std::span<Tensor> out) = 0;
    /// Stores the mask and returns true if apply() only multiplies the gradient by the mask of an activation.
    virtual bool mask(ActivationMask& mask) { return false; }
    /// Whether the node has apply_masked(), a variant of apply() that first multiplies the gradient by a mask.
    virtual bool takes_mask() const { return false; }
    virtual void apply_masked(const ActivationMask& mask, std::span<Tensor> grads, std::span<Tensor> out) {}
    /// Called before results are written in place. If the node has saved results, it copies them and stores the copies
    /// instead.
    virtual void copy_results() {}
    /// Releases the saved tensors; a later `apply` raises an error.
    virtual void release_saved() { released_.store(true, std::memory_order_release); }
    virtual std::string name() const { return name_; }
    /// Calls `visit` with each saved tensor and the name of its argument or result. Must not be called while the node
    /// runs.
    using SavedVisitor = std::function<void(const std::string& name, const SavedTensor& saved)>;
    virtual void saved(const SavedVisitor& visit) const {}
    /// Returns Python's object for this node (a Function's context), or null.
    virtual void* python_object() const { return nullptr; }
    /// Called when the last reference is released. Returns true if another reference was taken, so that the
    /// node stays alive.
    virtual bool lives_on() { return false; }
    /// Visits the Python objects that this node owns, for Python's garbage collector.
    virtual int traverse(int (*visit)(void*, void*), void* argument) { return 0; }

    /// Returns the sequence number. Nodes that are created later have greater numbers, so the number of a consumer is
    /// greater than the numbers of its producers.
    uint64_t sequence() const { return sequence_; }
    /// Returns the line that called the operator: Note [Sites].
    Site site() const { return site_; }
    uint32_t num_results() const { return num_results_; }
    std::span<Edge> edges() { return {edges_, num_edges_}; }
    /// Whether the running pass needs the gradient of an argument.
    bool wants(uint32_t edge) const {
        return edges_[edge] && !(detail::idle_edges >> std::min(edge, 63u) & 1);
    }
    void resize_edges(uint32_t n);
    void resize_results(uint32_t n) { num_results_ = n; }
    bool released() const { return released_.load(std::memory_order_relaxed); }

    /// Called before and after a pass runs the node: Note [Passes share nodes]. If `last` is true, the saved tensors
    /// are released afterwards.
    void enter(bool last);
    void leave(bool last, bool failed) noexcept;

    /// The lists are read and changed under hooks_mutex(). A pass copies a list and then calls the hooks in the copy.
    struct Hooks {
        // The hooks on the gradient of one result, with the index of the result: `tensor_hooks` of register_hook(),
        // then `retained` of retain_grad(). The hooks in `pre` run after both.
        std::vector<std::pair<uint32_t, std::shared_ptr<Hook>>> tensor_hooks, retained;
        std::vector<std::shared_ptr<Hook>> pre, post;
        std::string calls;  // the stack of calls that led to the operator (anomaly mode)
        std::shared_ptr<void> metadata;  // set by the language bindings
        Device stream_device;    // the device of `stream`
        void* stream = nullptr;  // the stream on which the operator ran; null for a default stream
    };
    Hooks& hooks() { return hooks_.get(); }
    Hooks* hooks_or_null() { return hooks_.get_or_null(); }

  protected:
    friend struct NodeAccess;
    friend class Growth;
    virtual ~Node();
    void check_not_released() const {
        if (released()) [[unlikely]]
            fail_released();
    }
    [[noreturn]] void fail_released() const;
    /// Called in the constructor of nodes that save nothing. Any number of passes may run such a node.
    void never_used_up() { never_used_up_ = true; }

    static constexpr uint32_t kInlineEdges = 3;
    const char* name_;
    uint64_t sequence_;
    uint32_t num_results_;
    uint32_t num_edges_;
    Site site_;
    std::atomic<uint32_t> visitors_{0};  // number of passes that are reading the node and do not use it up
    std::atomic<bool> claimed_{false};   // whether a pass that uses the node up has claimed it
    std::atomic<bool> released_{false};
    std::atomic<bool> counted_{false};  // Note [Graphs that grow]
    bool never_used_up_ = false;
    Edge* edges_;
    Edge inline_edges_[kInlineEdges];
    Lazy<Hooks> hooks_;
};

/// Guards the lists of hooks of all nodes and tensors. The mutex is never held while a hook runs.
RL_API std::mutex& hooks_mutex();

/// Allocate and release the memory of nodes. Each thread keeps released memory for later nodes.
RL_API void* allocate_node(size_t nbytes);
RL_API void release_node(void* node, size_t nbytes) noexcept;
#define RL_NODE_MEMORY                                                                      \
    static void* operator new(size_t n) { return ::rushlight::autograd::allocate_node(n); } \
    static void operator delete(void* p, size_t n) noexcept { ::rushlight::autograd::release_node(p, n); }

/// The last node of the graph at a leaf, which adds incoming gradients to the leaf's `grad`.
class RL_API AccumulateGrad final : public Node {
  public:
    RL_NODE_MEMORY
    explicit AccumulateGrad(Tensor variable);
    ~AccumulateGrad() override;
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    void release_saved() override {}
    const Tensor& variable() const { return variable_; }

  private:
    void accumulate(Tensor& grad);

    Tensor variable_;
    SpinLock adding_;  // because passes on several threads may add to the same `grad`
};

/// The node of an operator without a derivative, which raises an error when it receives a gradient.
class RL_API NotDifferentiable final : public Node {
  public:
    RL_NODE_MEMORY
    NotDifferentiable(std::string op, uint32_t num_results)
        : Node("NotDifferentiable", num_results, 0), op_(std::move(op)) {}
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    std::string name() const override { return "NotDifferentiable(" + op_ + ")"; }

  private:
    std::string op_;
};

}  // namespace rushlight::autograd
