// Checks of the tensors that an operator writes, and the shape of `out`.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// RuntimeError for a read-only tensor and for one whose elements share memory.
void check_writable(const char* op, const Tensor& t);

/// Makes `out` of an out= call have this shape and checks that `result` may be cast to its dtype. Warns where elements go.
void prepare_out(const char* op, const Tensor& out, IntList sizes, DType result);
/// The same without a warning, for operators that make new tensors.
void resize_out(const char* op, const Tensor& out, IntList sizes, DType result);
/// Raises the errors of `prepare_out`, and changes nothing.
void check_out(const char* op, const Tensor& out, IntList sizes, DType result);

}  // namespace rushlight
