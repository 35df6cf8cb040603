// Folding of batch norms into the convolutions before them.
#pragma once

#include <vector>

#include "rushlight/graph/graph.h"

namespace rushlight::graph {

/// Folds batch norms into convolutions. In evaluation mode, a batch norm multiplies each channel by a factor and adds a
/// number. If only the batch norm uses the result of a convolution, the factors are multiplied into the weights of the
/// convolution, and the batch norm is removed. Both layers must be called outside of control flow, and no node may
/// write to their constants. The new weights are computed in double precision. The last digits of the program's results
/// can change.
void fold_batch_norms(Graph& graph, std::vector<Tensor>& constants);

}  // namespace rushlight::graph
