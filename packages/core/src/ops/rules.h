// Rules of kind "custom": they check an operator's arguments and say what its outputs are. No memory is touched.
#pragma once

#include "ops/launch.h"

namespace rushlight::rules {

/// RuntimeError when two arguments differ in dtype.
inline void same_dtype(const char* op, const char* first, const Tensor& a, const char* second,
                       const Tensor& b) {
    RL_CHECK(a.dtype() == b.dtype(), throw_runtime, "%s(%s, %s): the dtypes %s and %s differ", op, first,
             second, name(a.dtype()), name(b.dtype()));
}
/// NotImplementedError for a dtype that is no floating one.
inline void floating_only(const char* op, const Tensor& t) {
    RL_CHECK(is_floating(t.dtype()), throw_not_implemented,
             "%s: not defined for dtype %s\nhint: convert the input to a floating dtype first", op,
             name(t.dtype()));
}

}  // namespace rushlight::rules
