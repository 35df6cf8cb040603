// Memory whose elements do not change.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// While an object of this class exists, it guarantees that the elements of the tensor whose first element is at `data`
/// do not change.
///
/// Kernels may then convert the tensor to another layout once and use the copy in later calls. For example,
/// convolutions by oneDNN keep filters in oneDNN's layout. The results of operators do not change. The copies take as
/// much memory as the tensor or a little more. They are freed when the last object for `data` is destroyed.
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
