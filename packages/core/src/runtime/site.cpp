#include "rushlight/site.h"

namespace rushlight {

namespace detail {
std::atomic<const SiteFunctions*> site_functions{nullptr};
}

void set_site_functions(const SiteFunctions* functions) { detail::site_functions.store(functions); }

std::string describe(Site site) {
    const SiteFunctions* f = detail::site_functions.load();
    return f && site ? f->describe(site) : std::string();
}

std::string current_calls() {
    const SiteFunctions* f = detail::site_functions.load();
    return f ? f->calls() : std::string();
}

}  // namespace rushlight
