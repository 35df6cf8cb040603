// Derivatives of functions (grad, vjp). Each transform creates leaves and records a graph that ends at them. The graph
// may also be connected to the graphs of other transforms and of the user.
#pragma once

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

// Note [Transforms]
// A transform differentiates a function with respect to leaves that it creates. Gradients flow along edges, so nested
// transforms cannot be confused. When a transform ends, its result stays in the graph if it can itself be
// differentiated: if the result's graph reaches a leaf that belongs to no transform, or to another transform that has
// not ended. Otherwise the graph leads only to the leaf of the transform, to which nothing else refers, and the result
// is detached.
using TransformId = uint64_t;

/// Begins a transform on this thread.
RL_API TransformId open_transform();
/// Ends the transform. Afterwards, reaches_outside() ignores the leaves of this transform.
RL_API void close_transform(TransformId id);

/// Returns the tensor with respect to which a transform differentiates. If `in_graph` is true and `t` has a graph, this
/// is a view that is connected to the graph of `t`. Otherwise it is a leaf. Tangents are kept.
RL_API Tensor transform_leaf(const Tensor& t, TransformId id, bool in_graph);
/// Whether the graph behind the tensors reaches a leaf that belongs neither to transform `id` nor to a transform that
/// has ended.
RL_API bool reaches_outside(TensorList tensors, TransformId id);
/// Returns the tensor without its history; tangents are kept.
RL_API Tensor cut_off(const Tensor& t);
/// Returns a result of transform `id`. The result and each of its tangents are detached if reaches_outside() is false for
/// them, or if `outer` is false, which means that no gradients are recorded outside of the transform.
RL_API Tensor finish(const Tensor& t, TransformId id, bool outer);

/// run_backward for tensors that may be batched: returns a gradient for each example.
RL_API std::vector<Tensor> run_batched_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                                const BackwardOptions& options);

/// Returns a view of `t` with `tangent` at `level`. The tangent must have the shape and dtype of `t`, or, inside of
/// vmap, of one example of `t`.
RL_API Tensor make_dual(const Tensor& t, const Tensor& tangent, Level level);
/// Attaches `tangent` to `t` itself, which must not be batched, and to the aliases of `t` that nodes have saved as their
/// result.
RL_API void attach_tangent(const Tensor& t, const Tensor& tangent, Level level);
/// Returns a view of `t` that has only the tangents of the levels outside of `level`, and the tangent at `level`,
/// which is undefined if there is none.
RL_API std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, Level level);

}  // namespace rushlight::autograd
