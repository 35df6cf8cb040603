#include "library.h"

#include <dlfcn.h>

#include "rushlight/error.h"

namespace rushlight::detail {

std::string own_folder() {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
    std::string path = info.dli_fname;
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

void* LazyLibrary::open() {
    void* handle = handle_.load(std::memory_order_acquire);
    if (handle || error_.load(std::memory_order_acquire)) return handle;
    // The full path is tried first, so that a library of the same name on LD_LIBRARY_PATH is not opened instead. The
    // name alone is tried next, because the loader may have a search path for it (in a build tree, the run path
    // contains the vendor's folder).
    handle = dlopen((own_folder() + file_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        auto text = std::string(dlerror());
        handle = dlopen(file_, RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            const std::string* expected = nullptr;
            auto* kept = new std::string(text);
            if (!error_.compare_exchange_strong(expected, kept)) delete kept;
            return nullptr;
        }
    }
    handle_.store(handle, std::memory_order_release);
    return handle;
}

void* LazyLibrary::symbol(const char* name) {
    void* handle = open();
    return handle ? dlsym(handle, name) : nullptr;
}

void* LazyLibrary::require(const char* name) {
    void* address = symbol(name);
    if (!address) {
        std::string why = why_not();
        throw_runtime("%s: %s", file_,
                      why.empty() ? (std::string("has no function '") + name + "'").c_str() : why.c_str());
    }
    return address;
}

std::string LazyLibrary::why_not() {
    open();
    const std::string* error = error_.load(std::memory_order_acquire);
    return error ? *error : std::string();
}

}  // namespace rushlight::detail
