// Internal functions on the state of tensors.
#pragma once

#include "rushlight/autograd/variable.h"
#include "rushlight/mutex.h"

namespace rushlight::autograd {
MetaTable meta_functions();
/// Returns the lock that guards the creation of the state of leaves.
SpinLock& leaf_state_lock();
/// Returns the mutex that guards the lists of tangents of all levels.
std::mutex& tangent_lists_mutex();
}  // namespace rushlight::autograd
