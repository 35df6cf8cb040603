// Counts the uses of the default generator, for captures of programs.
#pragma once

#include <cstdint>

#include "rushlight/export.h"

namespace rushlight {

/// How often the calling thread has drawn from the default generator or has changed its state. Other threads do not count.
RL_API uint64_t uses_of_default_generator();

}  // namespace rushlight
