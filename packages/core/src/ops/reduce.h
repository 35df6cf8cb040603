// Reductions. One engine computes shapes, dtypes, the order of traversal and the distribution over threads. An operator is a
// table of loops.
#pragma once

#include "cpu/reduce_table.h"
#include "rushlight/dispatch.h"

namespace rushlight {

struct ReduceDesc {
    /// Compute: the input's dtype. Bool: bool, or uint8 for uint8. Sum: int64 for integers and bool. Index: int64. Real: the
    /// input's dtype, or the dtype of the parts for complex input.
    enum class Result : uint8_t { Compute, Bool, Sum, Index, Real };

    const char* name;
    Result result;
    uint8_t num_params;
    const ReduceTable& (*loops)();
    KernelSlots* kernels;
};

/// Reduces over `dims`. Without `dims`, all dimensions are reduced. An empty list means all dimensions, or no dimension
/// if the result is Bool. `dtype` is the dtype of the elements and of the result.
Tensor reduce(const ReduceDesc& desc, const Tensor& input, std::optional<IntList> dims, bool keepdim,
              std::optional<DType> dtype, const Scalar* params);
/// Runs the CPU's kernel on views. It is called like a kernel of a device.
void reduce_views(const ReduceDesc& desc, const KernelArgs& k);
/// Reduces like reduce, and returns indices as a second result.
std::tuple<Tensor, Tensor> reduce_with_indices(const ReduceDesc& desc, const Tensor& input,
                                               std::optional<IntList> dims, bool keepdim,
                                               const Scalar* params);

}  // namespace rushlight
