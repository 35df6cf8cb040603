#include "rushlight/error.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace rushlight {

// The destructor is defined here, so that the catch clauses of all libraries use the same typeinfo.
Error::~Error() = default;

namespace {
[[noreturn]] void throw_formatted(ErrorKind kind, const char* format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = std::vsnprintf(nullptr, 0, format, args);
    std::vector<char> text(static_cast<size_t>(length < 0 ? 0 : length) + 1);
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    throw Error(kind, text.data());
}
}  // namespace

#define RL_THROWER(function, kind)                      \
    void function(const char* format, ...) {            \
        va_list args;                                   \
        va_start(args, format);                         \
        throw_formatted(ErrorKind::kind, format, args); \
    }
RL_THROWER(throw_runtime, Runtime)
RL_THROWER(throw_value, Value)
RL_THROWER(throw_type, Type)
RL_THROWER(throw_index, Index)
RL_THROWER(throw_not_implemented, NotImplemented)
RL_THROWER(throw_out_of_memory, OutOfMemory)
RL_THROWER(throw_buffer, Buffer)
RL_THROWER(throw_linalg, LinAlg)
#undef RL_THROWER

}  // namespace rushlight
