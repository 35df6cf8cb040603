// Statuses and texts of failures, stored for each thread.
#include <dlfcn.h>
#include <link.h>

#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/per_thread.h"
#include "rushlight/c_support.h"

namespace rushlight::c {
namespace {

// The last failure of this thread.
constinit thread_local rl_status last_status = RL_OK;
struct Failure {};
using LastText = PerThread<std::string, Failure>;

rl_status status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::Runtime: return RL_ERROR_RUNTIME;
        case ErrorKind::Value: return RL_ERROR_VALUE;
        case ErrorKind::Type: return RL_ERROR_TYPE;
        case ErrorKind::Index: return RL_ERROR_INDEX;
        case ErrorKind::NotImplemented: return RL_ERROR_NOT_IMPLEMENTED;
        case ErrorKind::OutOfMemory: return RL_ERROR_OUT_OF_MEMORY;
        case ErrorKind::Buffer: return RL_ERROR_BUFFER;
        case ErrorKind::Interrupted: return RL_ERROR_INTERRUPTED;
        case ErrorKind::LinAlg: return RL_ERROR_LINALG;
    }
    return RL_ERROR_OTHER;
}

// Returns the length of the UTF-8 character at the start of `text`, or 0 if there is none (RFC 3629).
size_t character_length(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    const size_t length = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < length; ++i)
        if (byte(i) >> 6 != 0b10) return 0;
    // Longer codes than necessary, surrogates, and numbers above U+10FFFF.
    const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return wrong ? 0 : length;
}

// Replaces bytes that are not UTF-8 by U+FFFD. Texts quote strings and file names of callers.
std::string as_utf8(std::string_view text) {
    std::string valid;
    while (!text.empty()) {
        const size_t length = character_length(text);
        valid += length ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
        text.remove_prefix(length ? length : 1);
    }
    return valid;
}

rl_status remember(rl_status status, const char* text) noexcept {
    last_status = status;
    try {
        LastText::get() = as_utf8(text);
    } catch (...) {
        if (std::string* old = LastText::get_if()) old->clear();
    }
    return status;
}

// Note [Copies of the library]
// Handles are addresses, so a copy of the library cannot distinguish tensors of another copy from its own tensors. The copy
// that is called second refuses to make handles. If both copies are loaded before the first call, both refuse. A copy
// detects another copy by looking up a function of this interface in each loaded library.
std::string find_other_copy() {
    std::vector<std::string> paths;
    const auto collect = [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name && *info->dlpi_name)
            static_cast<std::vector<std::string>*>(out)->push_back(info->dlpi_name);
        return 0;
    };
    dl_iterate_phdr(collect, &paths);
    const void* own = reinterpret_cast<const void*>(&rl_c_version);
    Dl_info here{};
    dladdr(own, &here);
    for (const std::string& path : paths) {
        void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        // If a library lacks the function, dlsym also searches the libraries that it depends on.
        const void* found = dlsym(library, "rl_c_version");
        Dl_info there{};
        if (found && found != own) dladdr(found, &there);
        dlclose(library);
        if (there.dli_fname)
            return std::string(here.dli_fname ? here.dli_fname : "?") + " and " + there.dli_fname;
    }
    return {};
}

}  // namespace

rl_status failure() noexcept {
    try {
        throw;
    } catch (const Error& error) {
        return remember(status_of(error.kind()), error.what());
    } catch (const std::bad_alloc&) {
        return remember(RL_ERROR_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) { return remember(RL_ERROR_OTHER, error.what()); } catch (...) {
        return remember(RL_ERROR_OTHER, "an unknown error");
    }
}

void require_one_copy() {
    static const std::string others = find_other_copy();
    RL_CHECK(others.empty(), throw_runtime,
             "this process has loaded two copies of librushlight: %s\n"
             "hint: link and load one copy only",
             others.c_str());
}

}  // namespace rushlight::c

using namespace rushlight::c;

extern "C" {

RL_API uint32_t rl_c_version(void) { return RL_C_VERSION; }
RL_API const char* rl_error_text(void) {
    const std::string* text = LastText::get_if();
    if (text && !text->empty()) return text->c_str();
    return last_status == RL_OK ? "" : "there was no memory for the text of this error";
}
RL_API rl_status rl_error_status(void) { return last_status; }

}  // extern "C"
