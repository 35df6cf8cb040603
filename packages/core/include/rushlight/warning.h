// Warnings to the user during a call.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Shows a warning to the user. May throw, so it must be called before anything is changed.
RL_API void warn(const char* text);

/// Sets the function that shows warnings. The function may throw. If it is null, warnings are written to standard
/// error.
RL_API void set_warning_handler(void (*handler)(const char* text));

}  // namespace rushlight
