// Products of sparse and dense matrices.
#include "bodies/sparse.h"

namespace rushlight::rules {

Outputs sparse_mm(const Tensor&, const Tensor&, const Tensor&, const Tensor& dense, int64_t rows) {
    Outputs outs;
    const int64_t sizes[] = {rows, dense.size(1)};
    outs.add(sizes, dense.dtype(), dense.device());
    return outs;
}

Outputs sampled_products(const Tensor& row, const Tensor&, const Tensor& a, const Tensor&) {
    Outputs outs;
    outs.add(row.sizes(), a.dtype(), a.device());
    return outs;
}

}  // namespace rushlight::rules
