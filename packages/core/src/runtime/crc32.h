// The CRC-32 checksum of zip archives (ISO 3309), with which checkpoints detect altered bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

/// Continues a checksum. `crc` is the checksum of the first part of a message. Returns the checksum of this first part
/// followed by the `size` bytes at `data`. The checksum of an empty message is 0. The result is the same as that of
/// zlib's crc32.
RL_API uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace rushlight
