// Writing past the caches, for results that are too large for them.
//
// Note [Streaming stores]
// A store first reads the cache line that it changes. Where a result is larger than the caches, that read is a quarter to a third of
// an operator's traffic, and the line is evicted before the next operator reads it. Non-temporal stores (store_past_caches
// in kernels/simd.h) leave the read out. Smaller results stay in the caches, where the next operator finds them.
// Streaming pays if loads and streaming stores alternate every few vectors. Collecting results in a buffer and
// streaming the buffer takes longer than ordinary stores.
#pragma once

#include <cstdint>

namespace rushlight::cpu {

/// The part of the last-level cache that one core can rely on. The size that the system reports is not a guide: behind
/// a hypervisor it may be another machine's, and other programs take their share.
inline constexpr int64_t kCacheBytes = 32 << 20;

/// Whether a result of so many bytes should be streamed.
inline constexpr bool worth_streaming(int64_t bytes) { return bytes > kCacheBytes; }

}  // namespace rushlight::cpu
