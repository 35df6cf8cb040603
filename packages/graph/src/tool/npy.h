// Arrays in NumPy's file format, versions 1 to 3.
#pragma once

#include <string>

#include "rushlight/tensor.h"

namespace rushlight::graph {

/// RuntimeError where the file cannot be read, ValueError where it is not an array of a dtype that tensors have.
Tensor read_npy(const std::string& path);
/// NotImplementedError for bfloat16, which the format lacks.
void write_npy(const std::string& path, const Tensor& t);

}  // namespace rushlight::graph
