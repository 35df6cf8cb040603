// A graph with its constants as one safetensors file.
#pragma once

#include <string>
#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

struct Contents {
    Graph graph;
    std::vector<Tensor> constants;
};

/// Reads a program whose constants are in the mapped file.
Contents read_file(const std::string& path);
/// Reads a program whose constants are in a copy of the bytes.
Contents read_bytes(const std::string& bytes);
std::string write_bytes(const Graph& graph, TensorList constants);
void write_file(const Graph& graph, TensorList constants, const std::string& path);

}  // namespace rushlight::graph
