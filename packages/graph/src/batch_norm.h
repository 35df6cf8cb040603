// Folding of batch norms into the convolutions before them.
#pragma once

#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Multiplies the weights of a convolution by the factors of the batch norm that alone uses its result, and removes the
/// batch norm: in evaluation mode it is a factor and a summand for each channel. Both must be calls outside of control flow,
/// with constants that no node writes. The new weights are computed in double precision; results differ in their last
/// digits.
void fold_batch_norms(Graph& graph, std::vector<Tensor>& constants);

}  // namespace rushlight::graph
