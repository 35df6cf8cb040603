// Reads and writes arrays in NumPy's file format, versions 1 to 3.
#pragma once

#include <string>

#include "rushlight/tensor.h"

namespace rushlight::graph {

/// Reads an array. Raises RuntimeError if the file cannot be read, and ValueError if it is not an array of a
/// supported dtype.
Tensor read_npy(const std::string& path);
/// Writes a tensor. Raises NotImplementedError for bfloat16, which the format does not have.
void write_npy(const std::string& path, const Tensor& t);

}  // namespace rushlight::graph
