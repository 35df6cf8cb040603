// Internal functions on the state of tensors.
#pragma once

#include "rushlight/autograd/variable.h"
#include "rushlight/mutex.h"

namespace rushlight::autograd {
MetaTable meta_functions();
/// Guards the creation of the state of leaves.
SpinLock& leaf_state_lock();
/// Guards the lists of tangents by level.
std::mutex& tangent_lists_mutex();
}  // namespace rushlight::autograd
