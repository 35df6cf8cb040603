// The choice of a LAPACK library. The machine is searched for a library when a matrix is first decomposed. See Note
// [LAPACK].
#pragma once

#include <string>

#include "rushlight/export.h"

namespace rushlight {

/// Returns paths of libraries that may contain LAPACK, one on each line, best first. Called when LAPACK is needed for
/// the first time, on any thread and while we hold no lock. Python's bindings search the installed packages.
using LapackFinder = std::string (*)();
RL_API void set_lapack_finder(LapackFinder finder);

/// The path of the library that LAPACK functions are called from; empty if LAPACK has not been needed yet.
RL_API std::string lapack_library();

}  // namespace rushlight
