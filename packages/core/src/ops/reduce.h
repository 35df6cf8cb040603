// Reductions: one engine does shapes, dtypes, the order of the walk and threads; an operator is a table of loops.
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// The loops of one reduction over one dtype. They work on partial results of `acc_size` bytes, which they alone know.
struct ReduceLoops {
    /// Makes `count` partial results of no elements.
    void (*start)(char* acc, int64_t count, const Scalar* params);
    /// Takes into each of `count` partial results `n` elements, `stride` bytes apart; the first ones of the results lie
    /// `step` bytes apart. They are number `index` and on of the elements of their result.
    void (*accumulate)(char* acc, const char* in, int64_t count, int64_t step, int64_t n, int64_t stride,
                       int64_t index, const Scalar* params);
    /// Takes `count` partial results of later elements into those of earlier ones.
    void (*join)(char* acc, const char* later, int64_t count, const Scalar* params);
    /// Turns partial results of `n` elements each into results of dtype `wide`, and where there is a second output into
    /// its int64 values.
    void (*finish)(char* out, char* second, const char* acc, int64_t count, int64_t n, const Scalar* params);
    DType wide;
    uint8_t acc_size;
    bool has_identity;  // no elements have a result
    bool ordered;  // elements are numbered: the walk may not change their order
};

/// By dtype of the input.
struct ReduceTable {
    ReduceLoops loop[kNumDTypes];
};

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

/// Over `dims`, all of them where there are none. `dtype`: of the elements and of the result.
Tensor reduce(const ReduceDesc& desc, const Tensor& input, std::optional<IntList> dims, bool keepdim,
              std::optional<DType> dtype, const Scalar* params);
/// With indices as a second result.
std::tuple<Tensor, Tensor> reduce_with_indices(const ReduceDesc& desc, const Tensor& input,
                                               std::optional<IntList> dims, bool keepdim,
                                               const Scalar* params);

}  // namespace rushlight
