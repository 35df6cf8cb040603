// Reductions: one engine does shapes, dtypes, the order of the walk and threads; an operator is a table of loops.
#pragma once

#include "cpu/reduce_table.h"
#include "rushlight/dispatch.h"

namespace rushlight {

struct ReduceDesc {
    /// Compute: the input's dtype. Bool: bool, or uint8 of uint8. Sum: int64 of integers and bool. Index: int64. Real: the
    /// input's dtype, of a complex one its parts' dtype.
    enum class Result : uint8_t { Compute, Bool, Sum, Index, Real };

    const char* name;
    Result result;
    uint8_t num_params;
    const ReduceTable& (*loops)();
    KernelSlots* kernels;
};

/// Reduces over `dims`. Without `dims`, all dimensions are reduced; with an empty list, all or, if the result is Bool,
/// none. `dtype` is the dtype of the elements and of the result.
Tensor reduce(const ReduceDesc& desc, const Tensor& input, std::optional<IntList> dims, bool keepdim,
              std::optional<DType> dtype, const Scalar* params);
/// The CPU's kernel over views, as a device's kernel is called.
void reduce_views(const ReduceDesc& desc, const KernelArgs& k);
/// With indices as a second result.
std::tuple<Tensor, Tensor> reduce_with_indices(const ReduceDesc& desc, const Tensor& input,
                                               std::optional<IntList> dims, bool keepdim,
                                               const Scalar* params);

}  // namespace rushlight
