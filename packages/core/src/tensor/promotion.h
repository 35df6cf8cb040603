// The dtype of an expression over tensors and numbers.
#pragma once

#include "rushlight/promotion.h"

namespace rushlight {

/// The default dtype of a number's category; bools and integers keep theirs.
DType default_dtype_of(Scalar number);

/// Tensors with dimensions come before 0-d tensors, and those before numbers, unless the later has a higher category (the
/// rule of PyTorch and of the array API standard).
class Promotion {
  public:
    void add(const TensorOrScalar& operand);
    DType result() const;

  private:
    void add(int priority, DType dtype);

    DType dtype_[3];  // by priority: 2 of tensors with dimensions, 1 of 0-d tensors, 0 of numbers
    bool seen_[3] = {false, false, false};
};

}  // namespace rushlight
