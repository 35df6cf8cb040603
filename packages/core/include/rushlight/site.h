// Sites: which line of the user's program is running. For errors that name two lines, one of which ran long before.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "rushlight/export.h"

namespace rushlight {

/// Note [Sites]
/// Saving a tensor and writing one record the source line, in four bytes: the number of a site in a table of the
/// bindings, which find the line of the running program; core has no Python. Taking a number costs some nanoseconds, since
/// the bindings look only at the running frame's code and place, and both are found in a small cache per thread. 0 is
/// somewhere unknown: no bindings, or a thread of ours.
using Site = uint32_t;

struct SiteFunctions {
    /// The running line, and `op`, which must be a string constant or null. Any thread; must not throw.
    Site (*current)(const char* op);
    /// "add_ at train.py:12", without the operator where there is none. "" for 0.
    std::string (*describe)(Site site);
    /// The calls that led here as the language prints them, the innermost last; takes its time.
    std::string (*calls)();
};

/// Installs the functions (null: none). They stay valid until the process ends.
RL_API void set_site_functions(const SiteFunctions* functions);

namespace detail {
extern RL_API std::atomic<const SiteFunctions*> site_functions;
}

inline Site current_site(const char* op = nullptr) {
    const SiteFunctions* f = detail::site_functions.load(std::memory_order_relaxed);
    return f ? f->current(op) : 0;
}
RL_API std::string describe(Site site);
RL_API std::string current_calls();

}  // namespace rushlight
