// What kernels keep of constants: Note [Rearranged constants].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rushlight {

// Note [Rearranged constants]
// A kernel that reads an operand in another layout than the tensor's copies it in every call. Where the tensor is constant
// (rushlight/constant_memory.h), it asks for a copy here instead. A copy belongs to the address of the tensor's first element and
// to a layout: a number of the kernel's, different for any two ways of rearranging that the kernel has.

/// Whether there is any constant. It takes no lock.
bool has_constant_memory();

/// The copy in `layout` of what is at `data`, `nbytes` long and made by `make(memory)` when it is first asked for; null where
/// `data` is not constant. `make` is called without a lock, so two threads may make the same copy, of which one is kept.
std::shared_ptr<void> rearranged_constant(const void* data, uint64_t layout, size_t nbytes,
                                          const std::function<void(void*)>& make);

}  // namespace rushlight
