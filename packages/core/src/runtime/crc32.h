// The checksum CRC-32 of zip archives (ISO 3309), by which checkpoints detect altered bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

/// The checksum of what `crc` is the checksum of and of `size` more bytes; 0 is that of no bytes. As zlib's crc32.
RL_API uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace rushlight
