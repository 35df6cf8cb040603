// Records what a thread calls as a Program.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rushlight/graph/program.h"

namespace rushlight::graph {

/// A tensor from outside of the traced region, by name.
struct Named {
    std::string name;
    Tensor tensor;
    ConstantKind kind = ConstantKind::Constant;
};

// Note [Capture]
// A provider of the Tracer stage, which lies above autograd: it records the operators that a program calls, and runs them. A
// composite is one call, unless the capture expands it; the operators inside are not recorded.
//
// A capture of level Below is a provider of the stage Recorder instead, which comes after autograd, forward derivatives, vmap
// and autocast: it records what formulas of gradients call and what the transforms make of an operator, so the program
// contains none of them. A composite is expanded there if one of them would handle what it calls.
//
// Values are tensors by identity, and below gradients by address. Effects are observed, since a schema marks what is
// returned and not every buffer that is updated: memory is shared where storages are the same, an argument was written where
// its version has moved, and an operator is random where the default generator has.
//
// What cannot be recorded is refused rather than taken for a constant: a tensor that an operator made for itself (and saved
// for gradients), values that are read, transforms that run below the tracer, generators of the program's own.

struct Recorder;

/// Where calls are recorded: above gradients and transforms, which each run of the program applies itself, or below, where they
/// are a part of the program.
enum class Level : uint8_t { Above, Below };

/// A tensor of the state or inputs whose `.grad` a region has set or removed.
struct GradChange {
    std::string name;
    bool before, after;  // whether there was one
};

/// A region of one thread's calls. What it writes to inputs and state, and what it draws from the default generator, is undone when
/// it ends.
class RL_API Capture {
  public:
    /// `inputs` become the program's arguments; `state`, parameters and buffers, its constants where they are used.
    /// Of the operators named in `expanded`, which must be composites, the operators that they call are recorded in their place.
    Capture(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded = {},
            Level level = Level::Above);
    ~Capture();
    Capture(const Capture&) = delete;

    /// From here on the calling thread's operators are recorded. RuntimeError where another capture is under way on it.
    void start();
    /// Ends the region, on the same thread. Without effect where it has ended.
    void stop();

    /// The module whose operators follow, "features.0", until it is left.
    void enter_module(std::string path);
    void leave_module();

    /// Below gradients, before `stop`: a gradient that the program reads from the run before, and replaces, is written to for the next.
    void carry_gradients();
    /// After `stop`: of the state alone.
    const std::vector<GradChange>& changed_gradients() const;
    /// Whether what was refused can be captured below gradients.
    bool needs_below() const;

    /// The program with these results, after `stop`; once.
    Program finish(TensorList outputs, std::map<std::string, std::string> metadata);

  private:
    std::unique_ptr<Recorder> recorder_;
    std::vector<GradChange> changed_gradients_;
};

// --- control flow: Note [Control flow] ---

/// What a branch or the body of a loop computes of its inputs.
using BlockFunction = std::function<std::vector<Tensor>(TensorList)>;

/// Whether the calling thread's operators are recorded.
RL_API bool is_capturing();
// Each records a node and calls every function once, which must be called while a capture is under way. RuntimeError where what a
// function returns has other types than it must; NotImplementedError where it writes to a tensor from outside of it, and, later,
// where a gradient is computed through the node.
/// One of two branches, which have no inputs and return the same types.
RL_API std::vector<Tensor> capture_cond(const Tensor& pred, const BlockFunction& true_fn,
                                        const BlockFunction& false_fn);
/// A loop while `cond_fn` returns true. `body_fn` returns what is carried on.
RL_API std::vector<Tensor> capture_while_loop(const BlockFunction& cond_fn, const BlockFunction& body_fn,
                                              TensorList carried);
/// A loop over slices of `xs` along the first dimension: `combine_fn` gets what is carried and the slices, and returns what is
/// carried on and further tensors. The results are the last carried ones, and the further ones stacked.
RL_API std::vector<Tensor> capture_scan(const BlockFunction& combine_fn, TensorList init, TensorList xs);

}  // namespace rushlight::graph
