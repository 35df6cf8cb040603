// Copies of constants in other layouts, which are kept for kernels: Note [Rearranged constants].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rushlight {

// Note [Rearranged constants]
// A kernel that needs an operand in another layout than the tensor's copies the operand in every call. If the tensor is
// constant (rushlight/constant_memory.h), the kernel requests a copy here instead, which is made once. A copy is
// identified by the address of the tensor's first element and by a layout, a number that the kernel assigns to each of
// its layouts.

/// Whether there is any constant memory. Takes no lock.
bool has_constant_memory();

/// Returns the copy in `layout` of the memory at `data`, or null if `data` is not constant. The copy has `nbytes`
/// bytes. When it is first requested, `make(memory)` fills it. `make` is called without a lock, so two threads may make
/// the same copy; one of the two copies is kept.
std::shared_ptr<void> rearranged_constant(const void* data, uint64_t layout, size_t nbytes,
                                          const std::function<void(void*)>& make);

}  // namespace rushlight
