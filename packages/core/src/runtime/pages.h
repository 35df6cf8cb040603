// Memory pages from the operating system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::detail {

inline constexpr size_t kHugePage = size_t{2} << 20;

/// Fresh zero pages at a multiple of 2 MiB, or nullptr. `nbytes` is a multiple of 4 KiB.
void* map_pages(size_t nbytes, bool huge) noexcept;
void unmap_pages(void* data, size_t nbytes) noexcept;
/// Gives the physical pages back and keeps the addresses; they read as zero afterwards.
void discard_pages(void* data, size_t nbytes) noexcept;

/// A clock that costs a few nanoseconds and is precise to a few milliseconds.
/// A variable, so that a test can move time.
extern uint64_t (*coarse_clock_ms)() noexcept;

}  // namespace rushlight::detail
