// Derivatives of functions (grad, vjp): separate graphs that begin at separate leaves, and may continue into
// the graphs of other transforms and of the user.
#pragma once

#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

// Note [Transforms]
// A transform differentiates a function with respect to leaves that it makes. Gradients go along edges, so transforms that
// are nested cannot be confused. The end of a transform must decide whether the result itself has derivatives. It has if
// its graph reaches a leaf that belongs to no transform, or to another transform that has not ended. Then the result stays
// in the graph. Otherwise the graph leads only to the transform's own leaf, which nothing else refers to, and the result
// is detached.
using TransformId = uint64_t;

/// Begins a transform on this thread.
RL_API TransformId open_transform();
/// Ends the transform: its leaves no longer count.
RL_API void close_transform(TransformId id);

/// Returns the tensor with respect to which a transform differentiates: with `in_graph` a view that is
/// connected to the graph of `t`, if there is one; else a leaf. Tangents are kept.
RL_API Tensor transform_leaf(const Tensor& t, TransformId id, bool in_graph);
/// Whether the graph behind the tensors reaches a leaf other than those of transform `id` and of transforms
/// that have ended.
RL_API bool reaches_outside(TensorList tensors, TransformId id);
/// Returns the tensor without its history; tangents are kept.
RL_API Tensor cut_off(const Tensor& t);

/// run_backward for tensors that may be batched: there is a gradient for each example.
RL_API std::vector<Tensor> run_batched_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                                const BackwardOptions& options);

/// Returns a view of `t` with a tangent at `level`, of the shape and dtype of `t`; inside of vmap, those of
/// one example.
RL_API Tensor make_dual(const Tensor& t, const Tensor& tangent, Level level);
/// Returns a view of `t` as the levels outside of `level` see it, and its tangent at `level`, undefined if
/// there is none.
RL_API std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, Level level);

}  // namespace rushlight::autograd
