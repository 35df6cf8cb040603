// Warnings to the user during a call.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Shows a warning to the user. May throw, so it must be called before anything is changed.
RL_API void warn(const char* text);

/// The function that shows a warning; may throw. Null: standard error.
RL_API void set_warning_handler(void (*handler)(const char* text));

}  // namespace rushlight
