// Memory whose elements do not change.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// A guarantee that the elements of a tensor do not change while the object exists. `data` is the address of the
/// tensor's first element.
///
/// Kernels may then convert the tensor to another layout once and use the copy in later calls. For example,
/// convolutions by oneDNN keep a copy of the filters in oneDNN's layout. This does not affect the results of operators.
/// A copy takes as much memory as the tensor or a little more, and is freed when the last object for `data` is
/// destroyed.
class RL_API ConstantMemory {
  public:
    explicit ConstantMemory(const void* data);
    ~ConstantMemory();
    ConstantMemory(const ConstantMemory&) = delete;
    ConstantMemory& operator=(const ConstantMemory&) = delete;

  private:
    const void* data_;
};

}  // namespace rushlight
