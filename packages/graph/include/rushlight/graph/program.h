// A graph with its constants, ready to run. Needs no Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// A program. Copies share everything.
class RL_API Program {
  public:
    /// Verifies the graph and looks up its operators. `constants` are in the order of Graph::constants.
    Program(Graph graph, std::vector<Tensor> constants);

    /// One program for several, as the other `generalize`. Constants that are not state must have the same elements: RuntimeError.
    static Program generalize(const std::vector<Program>& programs, std::vector<Symbol> symbols,
                              const std::vector<std::vector<int64_t>>& values);

    /// Reads a file of `save`. Constants are mapped, not copied; what the program writes to them stays in this process.
    ///
    /// RuntimeError where the file cannot be opened, or an operator is missing; ValueError where it is not a program.
    static Program load(const std::string& path);
    /// The same of bytes in memory, which are copied.
    static Program from_bytes(const std::string& bytes);
    /// Writes one safetensors file, in place of `path` when it is complete.
    void save(const std::string& path) const;
    std::string to_bytes() const;

    /// A program that does the same with fewer nodes: calls of constants alone become constants, a call that was made before is not made
    /// again, and what has no effect is left out. Results are the same bit for bit on this processor; on another, a constant
    /// that was folded here may differ in its last digits from one that is computed there.
    ///
    /// With `fold_batch_norm`, a convolution whose result only a batch norm in evaluation uses has weights that do the work of
    /// both: results then differ in their last digits, and gradients reach neither's parameters.
    Program simplified(bool fold_batch_norm = false) const;
    /// The same program with other metadata.
    Program with_metadata(std::map<std::string, std::string> metadata) const;

    /// Runs all nodes. The inputs must have the types of Graph::inputs, else ValueError. Several threads may run a program that
    /// writes no constant.
    std::vector<Tensor> run(TensorList inputs) const;

    const Graph& graph() const;
    TensorList constants() const;

  private:
    struct State;
    explicit Program(std::shared_ptr<const State> state);
    std::shared_ptr<const State> state_;
};

}  // namespace rushlight::graph
