// Records the operators that a thread calls as a Program.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rushlight/graph/program.h"

namespace rushlight::graph {

/// A named tensor from outside of the captured region.
struct Named {
    std::string name;
    Tensor tensor;
    ConstantKind kind = ConstantKind::Constant;
};

// Note [Capture]
// A capture is a provider of the Tracer stage, which is above autograd. It records the operators that the user's code
// calls, and runs them. A composite is recorded as one call, without the operators inside, unless the capture expands
// it.
//
// A capture of level Below is a provider of the stage Recorder instead, which comes after autograd, forward
// derivatives, vmap and autocast. So it records the operators that gradient formulas and transforms call, and the
// program contains no transforms. A composite is expanded there if a transform would handle one of the operators that
// it calls.
//
// A value is identified by its tensor object; below gradients, also by its address. The effects of an operator are
// determined by observation, because a schema does not mark every buffer that the operator updates. Two values share
// memory if their storages are the same, an argument was written if its version has changed, and an operator is random
// if the default generator has advanced.
//
// Operations that cannot be recorded raise an error instead of becoming constants: tensors that an operator allocates
// internally (and saves for gradients), reads of values, transforms that run below the tracer, and generators other
// than the default generator.

struct Recorder;

/// The level at which calls are recorded. Above: the calls that the function makes are recorded, and each run of the
/// program applies gradients and transforms again. Below: the program also contains the operators that gradients and
/// transforms call.
enum class Level : uint8_t { Above, Below };

/// A tensor among the state or inputs whose `.grad` a region has set or removed.
struct GradChange {
    std::string name;
    bool before, after;  // whether it had a gradient before and after the region
};

/// A region in which the calls of one thread are recorded. When the region ends, inputs, state and the default
/// generator are restored.
class RL_API Capture {
  public:
    /// `inputs` become the program's arguments. `state` contains parameters and buffers; those that are used become the
    /// program's constants. The operators named in `expanded` must be composites; the operators that they call are
    /// recorded in their place.
    Capture(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded = {},
            Level level = Level::Above);
    ~Capture();
    Capture(const Capture&) = delete;

    /// Starts to record the calling thread's operators. Raises RuntimeError if the thread already has a capture.
    void start();
    /// Ends the region, on the same thread. Does nothing if it has ended.
    void stop();

    /// Sets the module, such as "features.0", that is recorded with the following operators, until leave_module() is
    /// called.
    void enter_module(std::string path);
    void leave_module();

    /// For captures below gradients. Must be called before `stop`. If the region reads a gradient of the previous run
    /// and replaces it, this function records that the new gradient is written to the memory of the old gradient. The
    /// next run reads it there.
    void carry_gradients();
    /// Returns the gradients of the state that the region has set or removed. Must be called after `stop`.
    const std::vector<GradChange>& changed_gradients() const;
    /// Whether the operation that raised an error can be captured below gradients.
    bool needs_below() const;

    /// Returns the program whose results are `outputs`. Must be called once, after `stop`.
    Program finish(TensorList outputs, std::map<std::string, std::string> metadata);

  private:
    std::unique_ptr<Recorder> recorder_;
    std::vector<GradChange> changed_gradients_;
};

// --- control flow: Note [Control flow] ---

/// The function that is recorded as a branch or as the body of a loop.
using BlockFunction = std::function<std::vector<Tensor>(TensorList)>;

/// Whether the calling thread's operators are recorded.
RL_API bool is_capturing();
// Each of these functions records a node and calls its argument functions once. They must be called during a capture. They
// raise RuntimeError if the results of a function have wrong types, and NotImplementedError if a function writes to a tensor
// from outside of it. Computing a gradient through the node later in the capture raises NotImplementedError, too.
/// Records a conditional, which runs one of two branches. The branches have no inputs and return tensors of the same
/// types.
RL_API std::vector<Tensor> capture_cond(const Tensor& pred, const BlockFunction& true_fn,
                                        const BlockFunction& false_fn);
/// Records a loop that runs while `cond_fn` returns true. `body_fn` returns the carried values of the next iteration.
RL_API std::vector<Tensor> capture_while_loop(const BlockFunction& cond_fn, const BlockFunction& body_fn,
                                              TensorList carried);
/// Records a loop over slices of `xs` along the first dimension. `combine_fn` takes the carried values and the slices.
/// It returns the next carried values and further tensors. The results are the last carried values, followed by the
/// further tensors, each of which is stacked over all iterations.
RL_API std::vector<Tensor> capture_scan(const BlockFunction& combine_fn, TensorList init, TensorList xs);

}  // namespace rushlight::graph
