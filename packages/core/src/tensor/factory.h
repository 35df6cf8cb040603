// Creation of tensors whose storage has no memory.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

/// Returns a tensor of this geometry over a storage whose size is not checked.
Tensor make_without_memory(Ref<Storage> storage, IntList sizes, IntList strides, DType dtype);

}  // namespace rushlight
