// Records what a thread calls as a Program.
#pragma once

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
// A provider of the Tracer stage, which lies above autograd: it sees the operators that a program calls, and lets them run. A
// composite is one call, unless the capture is asked to expand it; what it is made of runs unrecorded. Values are tensors by identity. Effects are observed, since a
// schema marks what is returned and not every buffer that is updated: memory is shared where storages are the same, an
// argument was written where its version has moved, and an operator is random where the default generator has.
//
// What is not seen is refused rather than taken for a constant: a tensor that an operator made for itself (and saved for
// gradients), values that are read, transforms that run below (vmap, dual numbers, autocast), generators of the program's own.

struct Recorder;

/// A region of one thread's calls. What it writes to inputs and state, and what it draws from the default generator, is undone when
/// it ends.
class RL_API Capture {
  public:
    /// `inputs` become the program's arguments; `state`, parameters and buffers, its constants where they are used.
    /// Of the operators named in `expanded`, which must be composites, the operators that they call are recorded in their place.
    Capture(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded = {});
    ~Capture();
    Capture(const Capture&) = delete;

    /// From here on the calling thread's operators are recorded. RuntimeError where another capture is under way on it.
    void start();
    /// Ends the region, on the same thread. Without effect where it has ended.
    void stop();

    /// The module whose operators follow, "features.0", until it is left.
    void enter_module(std::string path);
    void leave_module();

    /// The program with these results, after `stop`; once.
    Program finish(TensorList outputs, std::map<std::string, std::string> metadata);

  private:
    std::unique_ptr<Recorder> recorder_;
};

}  // namespace rushlight::graph
