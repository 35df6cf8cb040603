// Rules of kind "custom": they check an operator's arguments and determine its outputs. They do not access memory.
#pragma once

#include <initializer_list>

#include "ops/launch.h"

namespace rushlight::rules {

/// Raises RuntimeError if two arguments differ in dtype.
inline void same_dtype(const char* op, const char* first, const Tensor& a, const char* second,
                       const Tensor& b) {
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "%s(%s, %s): must have the same dtype, got %s and %s", op,
             first, second, name(a.dtype()), name(b.dtype()));
}
/// Raises NotImplementedError for a dtype for which an operator has no kernel.
inline void check_defined(bool defined, const char* op, DType dtype) {
    RL_CHECK(defined, throw_not_implemented, "%s: not defined for dtype %s", op, name(dtype));
}
/// Raises NotImplementedError if the dtype is not floating-point.
inline void floating_only(const char* op, const Tensor& t) {
    RL_CHECK(is_floating(t.dtype()), throw_not_implemented,
             "%s: not defined for dtype %s\nhint: convert the input to a floating dtype first", op,
             name(t.dtype()));
}

/// Adds an output with an entry for each matrix of a batch. Its shape is the shape of `a` without the last two
/// dimensions, followed by `more`.
inline void add_batch(Outputs& out, const Tensor& a, std::initializer_list<int64_t> more, DType dtype) {
    int64_t sizes[kMaxDims];
    size_t n = 0;
    for (int64_t s : a.sizes().first(static_cast<size_t>(a.dim() - 2))) sizes[n++] = s;
    for (int64_t s : more) sizes[n++] = s;
    out.add(IntList(sizes, n), dtype, a.device());
}

}  // namespace rushlight::rules
