// The dtype of an expression of tensors and numbers.
#pragma once

#include "rushlight/promotion.h"

namespace rushlight {

/// The default dtype of the number's category; bool and int64 stay unchanged.
DType default_dtype_of(Scalar number);

/// Tensors with dimensions take precedence over 0-d tensors, and 0-d tensors take precedence over numbers, unless an
/// operand of lower precedence has a higher category (the rule of PyTorch and of the array API standard).
class Promotion {
  public:
    void add(const TensorOrScalar& operand);
    DType result() const;

  private:
    void add(int priority, DType dtype);

    // By priority: 2 for tensors with dimensions, 1 for 0-d tensors, 0 for numbers.
    DType dtype_[3];
    bool seen_[3] = {false, false, false};
};

}  // namespace rushlight
