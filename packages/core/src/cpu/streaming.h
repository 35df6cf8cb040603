// Stores that bypass the caches, for results that are larger than the caches.
//
// Note [Streaming stores]
// A store first reads the cache line that it changes. If a result is larger than the caches, that read is a quarter
// to a third of an operator's memory traffic, and the line is evicted before the next operator reads it.
// Non-temporal stores (store_past_caches in kernels/simd.h) avoid the read. Smaller results are stored normally, so
// that the next operator reads them from the caches. Streaming stores are faster if loads and streaming stores
// alternate every few vectors. Collecting results in a buffer and streaming the buffer takes longer than ordinary
// stores.
#pragma once

#include <cstdint>

namespace rushlight::cpu {

/// The part of the last-level cache that is assumed to be available to one core. The size that the system reports is
/// not used, because a hypervisor may report a wrong size and because other programs use the cache too.
inline constexpr int64_t kCacheBytes = 32 << 20;

/// Whether a result of `bytes` bytes should be written with streaming stores.
inline constexpr bool worth_streaming(int64_t bytes) { return bytes > kCacheBytes; }

}  // namespace rushlight::cpu
