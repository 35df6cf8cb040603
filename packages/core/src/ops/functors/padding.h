// The input elements that padding repeats.
#pragma once

#include <cstdint>
#include <string_view>

#include "rushlight/export.h"

namespace rushlight {

enum class PadMode : uint8_t { Reflect, Replicate, Circular };
inline PadMode pad_mode_of(std::string_view name) {
    return name == "reflect" ? PadMode::Reflect : name == "circular" ? PadMode::Circular : PadMode::Replicate;
}

namespace functors {
namespace {

/// Returns the index of the element at position `at`, which is relative to the first element and may be negative or above
/// `size`.
RL_HD inline int64_t padded_from(int64_t at, int64_t size, PadMode mode) {
    if (mode == PadMode::Reflect) return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
    if (mode == PadMode::Circular) return at < 0 ? at + size : at >= size ? at - size : at;
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

}  // namespace
}  // namespace functors
}  // namespace rushlight
