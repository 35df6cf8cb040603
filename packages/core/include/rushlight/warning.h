// What the user is told while a call goes on.
#pragma once

#include "rushlight/export.h"

namespace rushlight {

/// Tells the user. May throw, so that nothing is changed before it.
RL_API void warn(const char* text);

/// Who tells the user; may throw. Null: standard error.
RL_API void set_warning_handler(void (*handler)(const char* text));

}  // namespace rushlight
