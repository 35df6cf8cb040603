// Results of operators that first make a tensor and then write to it in place.
#pragma once

#include "rushlight/tensor.h"
#include "rushlight/tracing.h"

namespace rushlight {

/// Sets the version of a new result to 0, because the writes by which an operator computes its result are not counted: Note
/// [Versions]. The version stays as it is if another tensor shares the memory, for example one that a node has saved, or if a
/// tracer has recorded the writes.
inline Tensor fresh(Tensor result) {
    if (result.version() != 0 && result.impl()->storage()->use_count() == 1 && !is_tracing())
        result.impl()->storage()->restart_versions();
    return result;
}

}  // namespace rushlight
