// Batched tensors, on which the function of vmap computes.
#pragma once

#include <memory>

#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/intrusive.h"

namespace rushlight::autograd {

// Note [Batched tensors]
// A batched tensor stands for one tensor of each example. It is a TensorImpl of one example's shape that carries
// Stage::Batch; its value, a plain tensor, has in front a dimension for each vmap that it is batched in, the outermost first.
// So it is always the outermost wrapper: graphs, tangents and requires_grad are the value's. The Batch stage, which is above
// Dual and Autograd, takes the innermost level off, runs the operator's rule on what is below, and wraps the results.
//
// That rows do not depend on each other makes gradients inside of vmap right: a transform that begins in there expands what
// it differentiates with respect to (Note [Transforms]) to all levels that are open, so that each example has its own leaf.

/// What random operators do in vmap.
enum class Randomness : uint8_t { Error, Different, Same };

/// One vmap while it runs.
struct RL_API BatchLevel final : RefCounted {
    Ref<BatchLevel> outer;
    int number = 1;  // 1 is outermost
    int64_t size = 0;
    Randomness randomness = Randomness::Error;
    // Batches only gradients or tangents, whose function is not run in it: leaves need not be expanded to it.
    bool passive = false;
    std::atomic<bool> open{true};

    static void destroy(BatchLevel* level) { delete level; }
};

/// A batched tensor's state, in its Meta.
struct Batched {
    Tensor value;  // a plain tensor
    uint64_t levels = 0;  // bit n: batched in level n
    Ref<BatchLevel> innermost;
};

/// The innermost open level of this thread; null outside of vmap.
RL_API const Ref<BatchLevel>& current_batch_level();
/// Opens a level of `size` examples on this thread; the outermost is number 1.
RL_API Ref<BatchLevel> open_batch_level(int64_t size, Randomness randomness, bool passive);
/// Makes another level, or none, this thread's innermost; returns the former. For functions that see all examples.
RL_API Ref<BatchLevel> set_batch_level(Ref<BatchLevel> level);
/// Closes this thread's innermost level.
RL_API void close_batch_level();

/// The state of a batched tensor.
RL_API const Batched& batched(const Tensor& t);
/// Along dimension 0 of `t` lie the examples of `level`, which is inside of all that `t` is batched in.
RL_API Tensor batch(const Tensor& t, const Ref<BatchLevel>& level);
/// What `batch` was given. Of a tensor that is not batched in this level: itself, or with `expand` a view of it with as many
/// equal rows.
RL_API Tensor unbatch(const Tensor& t, const BatchLevel& level, bool expand);
/// The plain tensor behind a batched one; others as they are.
RL_API Tensor physical(const Tensor& t);
/// A plain tensor that is batched like this: its leading dimensions belong to `levels`.
RL_API Tensor wrap_levels(const Tensor& value, uint64_t levels, const Ref<BatchLevel>& innermost);
/// Batched in every open level that is not passive, by views; as it is outside of vmap.
RL_API Tensor expand_to_open_levels(const Tensor& t);
/// The value laid out for `levels` (those that `t` lacks are expanded), as a plain tensor.
RL_API Tensor physical_for(const Tensor& t, uint64_t levels, const BatchLevel& innermost);

/// A tensor of which `levels` are dimensions in front, as for a plain tensor behind one batched in them; what else it is
/// batched in stays so. And back.
RL_API Tensor split_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost);
RL_API Tensor merge_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost);

/// The slow path was taken for the first time for this operator; `report` may be null.
RL_API void set_slow_path_report(void (*report)(const char* op));
/// Names of operators that have taken the slow path so far; `forget` empties the list, so that they are reported again.
RL_API std::vector<std::string> slow_path_taken(bool forget);

/// Attaches the Batch stage.
void install_batch();

}  // namespace rushlight::autograd
