// Records the tensor arguments of an operator as words of a lane.
#pragma once

#include "ring.h"
#include "rushlight/value.h"

namespace rushlight::profiler {

// The first word counts the arguments. Each argument begins with a word of a tag (bits 56-63), a dtype
// (48-55) and a count (0-47): the dimensions of a tensor, whose sizes follow, or the tensors of a list, which
// follow.
enum class ArgumentTag : uint64_t { Other, Tensor, List };

/// Writes and publishes the arguments. Returns the number of words, or 0 if they are too many or there is no room; they are
/// then not recorded.
uint16_t write_arguments(Ring<uint64_t>& words, const Stack& arguments);

}  // namespace rushlight::profiler
