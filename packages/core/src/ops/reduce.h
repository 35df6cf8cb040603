// Reductions. One engine computes shapes, dtypes, the order of traversal and the distribution over threads. An operator is a
// table of loops.
#pragma once

#include "cpu/reduce_table.h"
#include "rushlight/dispatch.h"

namespace rushlight {

struct ReduceDesc {
    /// The dtype of the result. Compute: the input's dtype. Bool: uint8 if the input is uint8, otherwise bool. Sum:
    /// int64 if the input is integer or bool, otherwise the input's dtype. Index: int64. Real: the dtype of the parts
    /// if the input is complex, otherwise the input's dtype.
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
/// Does the same as reduce, and also returns indices.
std::tuple<Tensor, Tensor> reduce_with_indices(const ReduceDesc& desc, const Tensor& input,
                                               std::optional<IntList> dims, bool keepdim,
                                               const Scalar* params);

}  // namespace rushlight
