// Batched tensors, on which the function of vmap computes.
#pragma once

#include <memory>

#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/intrusive.h"

namespace rushlight::autograd {

// Note [Batched tensors]
// A batched tensor represents one tensor for each example. It is a TensorImpl that has the shape of one example and
// carries Stage::Batch. Its value, a plain tensor, has a leading dimension for each vmap in which it is batched, the
// outermost first. So a batched tensor is always the outermost wrapper: graphs, tangents and requires_grad belong to
// the value. The Batch stage, which is above Dual and Autograd, unwraps the innermost level, runs the operator's rule
// on the values, and wraps the results.
//
// Gradients inside of vmap are correct because examples do not depend on each other. A transform that begins inside of
// vmap creates the leaves with respect to which it differentiates (Note [Transforms]). It expands them to all open
// levels, so that each example has a separate leaf.

/// How random operators behave inside vmap.
enum class Randomness : uint8_t { Error, Different, Same };

/// A vmap that is running.
struct RL_API BatchLevel final : RefCounted {
    Ref<BatchLevel> outer;
    int number = 1;  // 1 is outermost
    int64_t size = 0;
    Randomness randomness = Randomness::Error;
    // Whether the level batches only gradients or tangents. The user's function does not run in such a level, so
    // leaves need not be expanded to it.
    bool passive = false;
    // Bit n: level n is not open for functions that run in this level, because their tensors hold all examples of level
    // n. Tensors that are batched in a passive level among these may still occur, as tangents.
    uint64_t hides = 0;
    std::atomic<int> hidden{0};  // the number of open levels that hide this level
    std::atomic<bool> open{true};

    static void destroy(BatchLevel* level) { delete level; }
};

/// The state of a batched tensor, which is stored in its Meta.
struct Batched {
    Tensor value;  // a plain tensor
    uint64_t levels = 0;  // bit n: batched in level n
    Ref<BatchLevel> innermost;
};

/// Returns the innermost open level of this thread; null outside of vmap.
RL_API const Ref<BatchLevel>& current_batch_level();
/// Returns the innermost open level of this thread that is neither passive nor hidden; null if there is none.
RL_API Ref<BatchLevel> innermost_shown_level();
/// Opens a level of `size` examples on this thread; the outermost level has the number 1.
RL_API Ref<BatchLevel> open_batch_level(int64_t size, Randomness randomness, bool passive);
/// Hides open levels, given as bits, for functions that operate on all examples at once. Opens a passive level for this. So
/// the numbers of levels that are opened while others are hidden are greater than the numbers of the hidden levels.
RL_API void hide_batch_levels(uint64_t levels);
/// Ends the last hide_batch_levels().
RL_API void show_batch_levels();
/// Closes this thread's innermost level.
RL_API void close_batch_level();

/// Returns the state of a batched tensor.
RL_API const Batched& batched(const Tensor& t);
/// Returns `t` batched in `level`, with the examples along dimension 0 of `t`. `level` must be inside of all levels
/// in which `t` is batched already; otherwise raises an error.
RL_API Tensor batch(const Tensor& t, const Ref<BatchLevel>& level);
/// Returns the tensor that was passed to `batch`. If the tensor is not batched in this level, returns it unchanged or,
/// if `expand` is true, as a view that repeats it for each example, along dimension 0.
RL_API Tensor unbatch(const Tensor& t, const BatchLevel& level, bool expand);
/// Returns the plain tensor that a batched tensor wraps. Other tensors are returned unchanged.
RL_API Tensor physical(const Tensor& t);
/// Wraps a plain tensor as a batched tensor. The leading dimensions of the plain tensor belong to `levels`.
RL_API Tensor wrap_levels(const Tensor& value, uint64_t levels, const Ref<BatchLevel>& innermost);
/// Returns a view of the tensor that is batched in every open level that is not passive. Outside of vmap, returns the
/// tensor itself.
RL_API Tensor expand_to_open_levels(const Tensor& t);
/// Returns the value of `t` as a plain tensor with leading dimensions for `levels`. For levels in which `t` is not
/// batched, the value is expanded.
RL_API Tensor physical_for(const Tensor& t, uint64_t levels, const BatchLevel& innermost);

/// split_levels turns `levels` into leading dimensions, and merge_levels turns them back. All other levels of the
/// tensor stay batched.
RL_API Tensor split_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost);
RL_API Tensor merge_levels(const Tensor& t, uint64_t levels, const Ref<BatchLevel>& innermost);

/// The levels in which some tensors are batched.
struct RL_API BatchLevels {
    uint64_t bits = 0;
    Ref<BatchLevel> innermost;
    /// Adds the levels in which a tensor is batched. The tensor may be undefined.
    void add(const Tensor& t);
    /// Whether `t` is batched in all these levels.
    bool within(const Tensor& t) const;
};
/// Returns a tensor of zeros, batched in `levels`. Each example has the given sizes and strides, and separate memory,
/// so that values that are batched in these levels can be written to the tensor.
RL_API Tensor batched_zeros(IntList sizes, IntList strides, DType dtype, Device device,
                            const BatchLevels& levels);
/// The same with contiguous examples.
RL_API Tensor batched_zeros(IntList sizes, DType dtype, Device device, const BatchLevels& levels);
/// Returns a contiguous copy of `t` that is batched in `levels` and in the levels in which `t` is batched. If `t` is
/// batched in `levels` already, returns `t` itself.
RL_API Tensor batched_copy(const Tensor& t, BatchLevels levels);

/// Sets the function that is called when an operator takes the slow path for the first time; `report` may be
/// null.
RL_API void set_slow_path_report(void (*report)(const char* op));
/// Returns the names of the operators that have taken the slow path so far; `forget` empties the list, so
/// that they are reported again.
RL_API std::vector<std::string> slow_path_taken(bool forget);

/// Attaches the Batch stage.
void install_batch();

}  // namespace rushlight::autograd
