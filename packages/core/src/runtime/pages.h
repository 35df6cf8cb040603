// Memory pages from the operating system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::detail {

inline constexpr size_t kHugePage = size_t{2} << 20;

/// Returns new zero pages at a multiple of 2 MiB, or nullptr. `nbytes` must be a multiple of 4 KiB.
void* map_pages(size_t nbytes, bool huge) noexcept;
void unmap_pages(void* data, size_t nbytes) noexcept;
/// Returns the physical pages to the system but keeps the addresses, which read as zero afterwards.
void discard_pages(void* data, size_t nbytes) noexcept;

/// A clock that costs a few nanoseconds and has a resolution of a few milliseconds. It is a variable, so that a test
/// can change the time.
extern uint64_t (*coarse_clock_ms)() noexcept;

}  // namespace rushlight::detail
