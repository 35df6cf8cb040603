// The choice of a LAPACK library. The machine is searched for a library when a matrix is first decomposed. See Note
// [LAPACK].
#pragma once

#include <string>

#include "rushlight/export.h"

namespace rushlight {

/// A function that returns the paths of libraries that may contain LAPACK, one on each line, the best first. It is
/// called when LAPACK is needed for the first time, on any thread; the thread holds no lock of ours. Python's bindings
/// search the installed packages.
using LapackFinder = std::string (*)();
RL_API void set_lapack_finder(LapackFinder finder);

/// The path of the library whose LAPACK functions are used; empty if LAPACK has not been needed yet.
RL_API std::string lapack_library();

}  // namespace rushlight
