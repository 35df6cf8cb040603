// Convolutions that do the work of the batch norm behind them.
#pragma once

#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Multiplies the weights of a convolution by the factors of the batch norm that alone uses its result, and leaves the batch
/// norm out: in evaluation it is a factor and a summand for each channel. Both must be calls outside of control flow, with
/// constants that no node writes. The new weights are computed in double precision; results differ in their last digits.
void fold_batch_norms(Graph& graph, std::vector<Tensor>& constants);

}  // namespace rushlight::graph
