// Copies of constants that kernels keep: Note [Rearranged constants].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rushlight {

// Note [Rearranged constants]
// A kernel that reads an operand in another layout than the tensor's copies it in every call. Where the tensor is constant
// (rushlight/constant_memory.h), it asks for a copy here instead. A copy belongs to the address of the tensor's first element and
// to a layout: a number that the kernel assigns to each of its ways of rearranging.

/// Whether there is any constant. It takes no lock.
bool has_constant_memory();

/// Returns the copy in `layout` of the memory at `data`. It has `nbytes` bytes and is made by `make(memory)` when it is
/// first requested. Null if `data` is not constant. `make` is called without a lock, so two threads may make the same
/// copy, of which one is kept.
std::shared_ptr<void> rearranged_constant(const void* data, uint64_t layout, size_t nbytes,
                                          const std::function<void(void*)>& make);

}  // namespace rushlight
