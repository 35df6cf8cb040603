// Records the arguments of an operator as 64-bit words in a lane.
#pragma once

#include "ring.h"
#include "rushlight/value.h"

namespace rushlight::profiler {

// The first word is the number of arguments. Each argument begins with a word that has a tag (bits 56-63), a dtype
// (bits 48-55) and a count (bits 0-47). For a tensor, the count is the number of dimensions, and a word for each size
// follows. For a list, the count is the number of tensors, and the tensors follow.
enum class ArgumentTag : uint64_t { Other, Tensor, List };

/// Writes and publishes the arguments. Returns the number of words. If there are too many words or there is no room,
/// records nothing and returns 0.
uint16_t write_arguments(Ring<uint64_t>& words, const Stack& arguments);

}  // namespace rushlight::profiler
