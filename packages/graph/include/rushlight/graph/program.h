// A graph with its constants. It can run without Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// A program. Copies of the object share the graph and the constants.
class RL_API Program {
  public:
    /// Verifies the graph and looks up its operators. `constants` are in the order of Graph::constants.
    Program(Graph graph, std::vector<Tensor> constants);

    /// Combines several captures of a program into one program, like the function `generalize` of graphs. Raises
    /// RuntimeError if constants that are not state have different elements.
    static Program generalize(const std::vector<Program>& programs, std::vector<Symbol> symbols,
                              const std::vector<std::vector<int64_t>>& values,
                              std::vector<int64_t>* undecided = nullptr,
                              const std::vector<std::vector<int64_t>>& tried = {});

    /// Reads a file that `save` wrote. Constants are memory-mapped, not copied. If the program writes to them, the
    ///file does not change.
    /// Raises RuntimeError if the file cannot be opened or an operator is missing, and ValueError if the file is not a
    /// program.
    static Program load(const std::string& path);
    /// Reads a program from bytes in memory, which are copied.
    static Program from_bytes(const std::string& bytes);
    /// Writes one safetensors file, which replaces `path` when it is complete.
    void save(const std::string& path) const;
    std::string to_bytes() const;

    /// Returns an equivalent program with fewer nodes: calls whose arguments are all constants become constants,
    /// repeated calls are merged, and calls without effect are removed. On the processor that executes this function,
    /// results equal those of the original program bit for bit. On another processor, a folded constant may differ in
    /// its last digits from the value that would be computed there.
    ///
    /// If `fold_batch_norm` is true, a batch norm in evaluation mode is folded into the weights of the convolution
    /// before it, provided that nothing else uses the result of the convolution. The last digits of the results can
    /// then change, and the parameters of both layers get no gradients.
    Program simplified(bool fold_batch_norm = false) const;
    /// Returns the same program with other metadata.
    Program with_metadata(std::map<std::string, std::string> metadata) const;

    /// Runs all nodes. Raises ValueError if the inputs do not have the types of Graph::inputs. Several threads may run a
    /// program that does not write to constants.
    std::vector<Tensor> run(TensorList inputs) const;

    const Graph& graph() const;
    TensorList constants() const;

  private:
    struct State;
    explicit Program(std::shared_ptr<const State> state);
    std::shared_ptr<const State> state_;
};

}  // namespace rushlight::graph
