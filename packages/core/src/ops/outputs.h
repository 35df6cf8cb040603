// Checks of the tensors that an operator writes, and resizing of `out`.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Raises RuntimeError if a tensor is read-only, or if several of its elements share a memory location.
void check_writable(const char* op, const Tensor& t);

/// Resizes the `out` of an out= call to this shape, after checking that `result` can be cast to its dtype. Warns if `out`
/// had elements.
void prepare_out(const char* op, const Tensor& out, IntList sizes, DType result);
/// Resizes without a warning, for operators that make new tensors.
void resize_out(const char* op, const Tensor& out, IntList sizes, DType result);
/// Raises the errors of `prepare_out` without changing `out`.
void check_out(const char* op, const Tensor& out, IntList sizes, DType result);

}  // namespace rushlight
