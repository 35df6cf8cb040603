// Sites: numbers of lines of the user's program. They are stored so that a later error can name the line.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "rushlight/export.h"

namespace rushlight {

/// Note [Sites] When a tensor is saved or written, the running line of the program is recorded in four bytes: the
/// number of a site in a table of the bindings. The bindings determine this number, because core does not use Python.
/// This takes a few nanoseconds, because the bindings only read the position of the running frame and look it up in a
/// small cache of the thread. Site 0 stands for an unknown line: there are no bindings, or the thread belongs to this
/// library.
using Site = uint32_t;

struct SiteFunctions {
    /// Returns the site for the running line of the program and the operator `op`, which must be a string constant or
    /// null. Called on any thread; must not throw.
    Site (*current)(const char* op);
    /// Returns a text such as "add_ at train.py:12". Without an operator, the text is only the line, such as
    /// "train.py:12". For site 0 it is empty.
    std::string (*describe)(Site site);
    /// Returns the stack of calls in the format in which the bindings' language prints it, the innermost call last.
    /// Slow.
    std::string (*calls)();
};

/// Installs the functions; null removes them. They must stay valid until the process ends.
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
