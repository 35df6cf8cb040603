// Memory whose elements do not change.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Promises that the elements of a tensor whose first one is at `data` do not change while the object lives.
///
/// Kernels may then rearrange the tensor once, and use the copy in later calls: convolutions by oneDNN keep filters in its
/// layout. Results are the same. The copies, which take as much memory as the tensor or a little more, are freed with the last
/// object for `data`.
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
