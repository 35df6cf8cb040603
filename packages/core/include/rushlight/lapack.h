// The choice of a LAPACK library: one of the user's, found when a matrix is first decomposed. Note [LAPACK].
#pragma once

#include <string>

#include "rushlight/export.h"

namespace rushlight {

/// Paths of libraries that may hold LAPACK, best first, one to a line. Called when one is needed for the first time, on
/// any thread and under no lock of ours. The bindings find one in packages of their language.
using LapackFinder = std::string (*)();
RL_API void set_lapack_finder(LapackFinder finder);

/// The path of the library in use; empty if none has been needed yet.
RL_API std::string lapack_library();

}  // namespace rushlight
