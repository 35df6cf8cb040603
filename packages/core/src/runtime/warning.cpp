#include "rushlight/warning.h"

#include <atomic>
#include <cstdio>

namespace rushlight {
namespace {

std::atomic<void (*)(const char*)> handler{nullptr};

}  // namespace

void warn(const char* text) {
    if (auto* tell = handler.load()) tell(text);
    else std::fprintf(stderr, "rushlight: %s\n", text);
}

void set_warning_handler(void (*tell)(const char* text)) { handler.store(tell); }

}  // namespace rushlight
