// Exceptions of the C++ libraries. Each becomes the Python exception of the same name, with the same text.
#pragma once

#include <stdexcept>
#include <string>

#include "rushlight/export.h"

namespace rushlight {

enum class ErrorKind : uint8_t {
    Runtime,
    Value,
    Type,
    Index,
    NotImplemented,
    OutOfMemory,
    Buffer,
    Interrupted,
    LinAlg
};

/// Every error raised by rushlight. `kind()` names the Python class that the bindings raise.
/// The text's first line names the operator, the argument, its value and what is required; a second may hint.
class RL_API Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
    ~Error() override;
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

// printf-style, out of line: a throwing call site costs one call and its constants.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_runtime(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_value(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_type(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_index(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_not_implemented(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_out_of_memory(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_buffer(const char* format, ...);
/// For example a matrix without an inverse or a Cholesky factor: linalg.LinAlgError, which is a RuntimeError.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_linalg(const char* format, ...);

#define RL_CHECK(condition, thrower, ...)                            \
    do {                                                             \
        if (__builtin_expect(!(condition), 0)) thrower(__VA_ARGS__); \
    } while (0)

}  // namespace rushlight
