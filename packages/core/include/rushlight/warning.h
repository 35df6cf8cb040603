// Warnings to the user during a call.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Tells the user. May throw, so that nothing is changed before it.
RL_API void warn(const char* text);

/// The function that shows a warning; may throw. Null: standard error.
RL_API void set_warning_handler(void (*handler)(const char* text));

}  // namespace rushlight
