// Arrays in NumPy's file format, versions 1 to 3.
#pragma once

#include <string>

#include "rushlight/tensor.h"

namespace rushlight::graph {

/// Raises RuntimeError if the file cannot be read, and ValueError if it is not an array of a supported dtype.
Tensor read_npy(const std::string& path);
/// Raises NotImplementedError for bfloat16, which the format lacks.
void write_npy(const std::string& path, const Tensor& t);

}  // namespace rushlight::graph
