// The recorded graph: nodes that turn gradients of results into gradients of arguments.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rushlight/dispatch.h"

namespace rushlight::autograd {

class Node;

/// Where a gradient goes: the `index`-th result of the operator behind `node`. Null: nobody wants it.
struct Edge {
    Ref<Node> node;
    uint32_t index = 0;

    explicit operator bool() const { return static_cast<bool>(node); }
};

/// Called with gradients on their way; may replace them. Owned by the node or the tensor that it watches.
class Hook {
  public:
    virtual ~Hook() = default;
    /// Before a node runs: gradients of its results; after it: gradients of its arguments.
    virtual void call(std::span<Tensor> gradients, std::span<const Tensor> given) = 0;
    /// For Python's collector: the callable, or null.
    virtual void* object() const { return nullptr; }
    uint64_t id = 0;
};

/// One recorded operator.
class RL_API Node : public RefCounted {
  public:
    /// `num_results`: how many gradients come in; `num_edges`: how many go out.
    Node(const char* name, uint32_t num_results, uint32_t num_edges);
    static void destroy(Node* node);
    /// Unlike other objects a node may be found through a plain pointer (`try_retain`), so the lone owner has no short cut.
    bool drop() const noexcept { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    /// From gradients of the results to gradients of the arguments. Absent gradients are undefined tensors.
    virtual void apply(std::span<Tensor> grads, std::span<Tensor> out) = 0;
    /// Lets go of what was saved; a second `apply` raises after that.
    virtual void release_saved() { released_ = true; }
    virtual std::string name() const { return name_; }
    /// Python's object for this node (a Function's context), or null.
    virtual void* python_object() const { return nullptr; }
    /// For Python's collector.
    virtual int traverse(int (*visit)(void*, void*), void* argument) { return 0; }

    /// Made later: greater. Consumers come after what they consume.
    uint64_t sequence() const { return sequence_; }
    /// Where the operator was called: Note [Sites].
    Site site() const { return site_; }
    uint32_t num_results() const { return num_results_; }
    std::span<Edge> edges() { return {edges_, num_edges_}; }
    bool wants(uint32_t edge) const { return static_cast<bool>(edges_[edge]); }
    void resize_edges(uint32_t n);
    void resize_results(uint32_t n) { num_results_ = n; }
    bool released() const { return released_; }

    struct Hooks {
        std::vector<std::pair<uint32_t, std::shared_ptr<Hook>>>
            tensor_hooks;  // on the gradient of one result
        std::vector<std::shared_ptr<Hook>> pre, post;
        std::string calls;  // that led to the operator: anomaly mode
    };
    Hooks& hooks();
    Hooks* hooks_or_null() { return hooks_.get(); }

  protected:
    friend struct NodeAccess;
    virtual ~Node();
    void check_not_released() const {
        if (released_) [[unlikely]]
            fail_released();
    }
    [[noreturn]] void fail_released() const;

    static constexpr uint32_t kInlineEdges = 3;
    const char* name_;
    uint64_t sequence_;
    uint32_t num_results_;
    uint32_t num_edges_;
    Site site_;
    bool released_ = false;
    Edge* edges_;
    Edge inline_edges_[kInlineEdges];
    std::unique_ptr<Hooks> hooks_;
};

/// Memory for nodes, recycled per thread.
RL_API void* allocate_node(size_t nbytes);
RL_API void release_node(void* node, size_t nbytes) noexcept;
#define RL_NODE_MEMORY                                                                      \
    static void* operator new(size_t n) { return ::rushlight::autograd::allocate_node(n); } \
    static void operator delete(void* p, size_t n) noexcept { ::rushlight::autograd::release_node(p, n); }

/// The end of the graph at a leaf: adds what arrives to the leaf's `grad`.
class RL_API AccumulateGrad final : public Node {
  public:
    RL_NODE_MEMORY
    explicit AccumulateGrad(Tensor variable);
    ~AccumulateGrad() override;
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    void release_saved() override {}
    const Tensor& variable() const { return variable_; }

  private:
    Tensor variable_;
};

/// Stands where an operator has no derivative: raises when a gradient arrives.
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
