// The state that autograd attaches to a tensor, and how a tensor gets its history.
#pragma once

#include "rushlight/autograd/batch.h"
#include "rushlight/autograd/node.h"
#include "rushlight/autograd/tangent.h"

namespace rushlight::autograd {

class RetainGrad;

/// The per-tensor state (TensorImpl::meta).
struct Meta {
    RL_NODE_MEMORY
    Ref<Node> grad_fn;  // null for leaves
    uint32_t index = 0;  // index of this tensor among the results of grad_fn
    // For a root: how many times its history has been replaced. For a view: the generation that its root had when the
    // view's history was made.
    uint32_t generation = 0;
    AccumulateGrad* accumulator = nullptr;  // node of a leaf; not owned, because the node owns the leaf
    std::shared_ptr<Tangent> tangent;  // for forward mode
    Tensor tangent_root;  // of a view that does not store its root: Note [Roots of tangents]
    uint64_t transform = 0;  // the transform that made this leaf: Note [Transforms]
    Batched batched;  // state of a batched tensor: Note [Batched tensors]
    struct Hooks {
        // Guarded by hooks_mutex(). Hooks in `pre` receive the gradient before it is accumulated or passed on.
        std::vector<std::shared_ptr<Hook>> pre, post_accumulate;
        std::shared_ptr<RetainGrad> retained;  // set by retain_grad(): Note [Retained gradients]
    };
    Lazy<Hooks> hooks;

    bool retains_grad() const {
        const Hooks* made = hooks.get_or_null();
        return made && made->retained;
    }
};

inline Meta* meta_or_null(const TensorImpl* impl) { return static_cast<Meta*>(impl->meta()); }
RL_API Meta& meta(TensorImpl* impl);

/// Returns the node of a tensor, null for a leaf. A view whose root was written in the meantime gets a new
/// node: Note [Stale views].
RL_API Ref<Node> grad_fn(const Tensor& t);
/// Returns the edge that receives the tensor's gradient; null if the tensor needs none.
RL_API Edge gradient_edge(const Tensor& t);
/// Does the same as gradient_edge(), for an operator that is being recorded. If the graph behind the edge was used up,
/// also reports this to Growth: Note [Graphs that grow].
RL_API Edge recorded_edge(const Tensor& t);

/// Records that `result` is the `index`-th result of the operator of `node`.
RL_API void set_history(const Tensor& result, const Ref<Node>& node, uint32_t index = 0);
/// Records that the operator of `node` has overwritten `t`: Note [In-place].
RL_API void rebase_history(const Tensor& t, const Ref<Node>& node, uint32_t index = 0);
/// Raises an error if an in-place operator on `t` cannot be recorded. This is the case for leaves that require grad
/// and for detached views.
RL_API void check_inplace(const char* op, const Tensor& t);

/// Keeps the gradient of a tensor that is not a leaf in its `grad`. Raises an error if the tensor does not
/// require grad; does nothing for a leaf.
RL_API void retain_grad(const Tensor& t);

inline bool needs_grad(const Tensor& t) { return t.defined() && t.requires_grad(); }
inline bool needs_grad(const TensorOrScalar& t) { return t.is_tensor() && t.tensor().requires_grad(); }
inline bool needs_grad(TensorList list) {
    for (const Tensor& t : list)
        if (needs_grad(t)) return true;
    return false;
}

}  // namespace rushlight::autograd
