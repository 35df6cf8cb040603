// Exceptions of the C++ libraries. The bindings convert each exception to the Python exception of the same name, with
// the same text.
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

/// The class of all errors that rushlight raises. `kind()` determines the Python exception class that the bindings
/// raise. The first line of the text names the operator, the argument, its value and the requirement. A second line may
/// give a hint.
class RL_API Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
    ~Error() override;
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

// The functions take printf formats. They are not inlined, so that a check adds little code to its function: one call
// and the constants.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_runtime(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_value(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_type(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_index(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_not_implemented(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_out_of_memory(const char* format, ...);
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_buffer(const char* format, ...);
/// Raises linalg.LinAlgError, a RuntimeError, for example for a matrix that has no inverse or no Cholesky factor.
[[noreturn, gnu::cold, gnu::format(printf, 1, 2)]] RL_API void throw_linalg(const char* format, ...);

#define RL_CHECK(condition, thrower, ...)                            \
    do {                                                             \
        if (__builtin_expect(!(condition), 0)) thrower(__VA_ARGS__); \
    } while (0)

}  // namespace rushlight
