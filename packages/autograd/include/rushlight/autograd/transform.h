// Derivatives of functions (grad, vjp): graphs of their own that begin at leaves of their own, and may go on into those of
// other transforms and of the user.
#pragma once

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

// Note [Transforms]
// A transform differentiates a function with respect to leaves that it makes. Gradients go along edges, so transforms that
// are nested cannot be confused. It must be decided when the result itself has derivatives: if its graph reaches a leaf
// that is none of a transform's, or that of another transform which is not over yet. Then the result stays in the graph;
// else only the transform's own leaf, which nothing else refers to, depends on it, and it is cut off.
using TransformId = uint64_t;

/// Begins a transform on this thread.
RL_API TransformId open_transform();
/// Ends it: its leaves no longer count.
RL_API void close_transform(TransformId id);

/// What a transform differentiates with respect to. `in_graph`: a view that goes on into the graph of `t`, where that has
/// one; else a leaf. Tangents stay.
RL_API Tensor transform_leaf(const Tensor& t, TransformId id, bool in_graph);
/// Whether the graph behind the tensors reaches a leaf beside those of transform `id` and of those that are over.
RL_API bool reaches_outside(TensorList tensors, TransformId id);
/// The tensor without its history; tangents stay.
RL_API Tensor cut_off(const Tensor& t);

/// run_backward of tensors that may be batched: gradients are those of each example.
RL_API std::vector<Tensor> run_batched_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                                const BackwardOptions& options);

/// A view of `t` with a tangent at `level`, of its shape and dtype; inside of vmap of each example.
RL_API Tensor make_dual(const Tensor& t, const Tensor& tangent, Level level);
/// A view of what `t` is to the levels outside of `level`, and its tangent there; undefined where it has none.
RL_API std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, Level level);

}  // namespace rushlight::autograd
