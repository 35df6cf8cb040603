#include "runtime/lapack.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "rushlight/error.h"

namespace rushlight {
namespace {

constexpr const char* kPrefixes[] = {"scipy_", ""};
struct Suffix {
    const char* text;
    bool wide;
};
constexpr Suffix kSuffixes[] = {{"_64_", true}, {"64_", true}, {"_", false}};
constexpr const char* kOfTheSystem[] = {"libopenblas.so.0", "libopenblas.so", "liblapack.so.3",
                                        "libmkl_rt.so", "libmkl_rt.so.2"};

struct Library {
    void* handle;
    std::string path;
    const char* prefix;
    Suffix suffix;
    void (*set_threads)(int) = nullptr;
    int (*threads)() = nullptr;

    void* routine(const char* name) const {
        return dlsym(handle, (std::string(prefix) + name + suffix.text).c_str());
    }
};

std::atomic<LapackFinder> finder{nullptr};
std::atomic<const Library*> loaded{nullptr};

// --- finding ---

/// Returns null and sets the reason if the file does not exist or contains no LAPACK.
const Library* open_library(const std::string& path, std::string& why) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* text = dlerror();
        why = text ? text : path + ": cannot be opened";
        return nullptr;
    }
    for (const char* prefix : kPrefixes) {
        for (const Suffix& suffix : kSuffixes) {
            Library found{handle, path, prefix, suffix};
            if (!found.routine("dgesdd")) continue;
            // These are C functions. The same names with an underscore before the suffix are Fortran functions, which
            // take addresses.
            const std::string name = std::string(prefix) + "openblas_", end = suffix.wide ? "64_" : "";
            found.set_threads =
                reinterpret_cast<void (*)(int)>(dlsym(handle, (name + "set_num_threads" + end).c_str()));
            found.threads =
                reinterpret_cast<int (*)()>(dlsym(handle, (name + "get_num_threads" + end).c_str()));
            if (!found.threads) found.set_threads = nullptr;
            return new Library(std::move(found));
        }
    }
    why = path + ": has no LAPACK";
    dlclose(handle);
    return nullptr;
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> found;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        if (end > begin) found.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return found;
}

const Library* find_library() {
    std::string why;
    if (const char* path = std::getenv("RUSHLIGHT_LAPACK"); path && *path) {
        const Library* found = open_library(path, why);
        RL_CHECK(found, throw_runtime,
                 "linear algebra: RUSHLIGHT_LAPACK does not name a usable library: %s\n"
                 "hint: set it to the path of a shared library with LAPACK, or unset it to use NumPy's",
                 why.c_str());
        return found;
    }
    LapackFinder find = finder.load();
    std::vector<std::string> paths = find ? lines(find()) : std::vector<std::string>();
    paths.insert(paths.end(), std::begin(kOfTheSystem), std::end(kOfTheSystem));
    for (const std::string& path : paths)
        if (const Library* found = open_library(path, why)) return found;
    throw_runtime(
        "linear algebra: no library with LAPACK was found\n"
        "hint: install NumPy from a wheel (pip install numpy), which contains LAPACK, or install OpenBLAS "
        "(libopenblas.so.0), or set RUSHLIGHT_LAPACK to the path of a library with LAPACK");
}

void watch_forks();

// Several threads may search at the same time. Opening a library twice returns the same library, and the first result
// is used.
const Library& library() {
    const Library* found = loaded.load(std::memory_order_acquire);
    if (found) [[likely]]
        return *found;
    found = find_library();
    const Library* none = nullptr;
    if (!loaded.compare_exchange_strong(none, found, std::memory_order_acq_rel)) {
        delete found;
        return *none;
    }
    watch_forks();
    return *found;
}

// --- threads ---

// Note [LAPACK threads]
// OpenBLAS has its own threads. Their number is one variable of the process, which code that uses NumPy may have set.
// When the first of several concurrent calls of ours begins, the number is saved, and when the last of them ends, it is
// restored. In between, it is the smallest number that any of these calls may use, which is 1 if many calls run at the
// same time.
std::mutex mutex;
int users = 0;
int former = 0;

void watch_forks() {
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                   [] {
                       // The threads that were running do not exist in the child process.
                       if (users > 0 && loaded.load()->set_threads) loaded.load()->set_threads(former);
                       users = 0;
                       mutex.unlock();
                   });
}

}  // namespace

void set_lapack_finder(LapackFinder f) { finder = f; }

std::string lapack_library() {
    const Library* found = loaded.load(std::memory_order_acquire);
    return found ? found->path : std::string();
}

namespace lapack {

bool is_wide() { return library().suffix.wide; }

void* Routine::find() {
    const Library& from = library();
    void* function = from.routine(name_);
    RL_CHECK(function, throw_runtime,
             "linear algebra: %s has no routine '%s'\nhint: set RUSHLIGHT_LAPACK to "
             "the path of a complete LAPACK",
             from.path.c_str(), name_);
    function_.store(function, std::memory_order_release);
    return function;
}

Threads::Threads(int threads) {
    const Library& l = library();
    if (!l.set_threads) return;
    std::lock_guard lock(mutex);
    const int now = l.threads();
    if (users++ == 0) former = now;
    else threads = std::min(threads, now);
    if (threads != now) l.set_threads(threads);
}

Threads::~Threads() {
    const Library& l = library();
    if (!l.set_threads) return;
    std::lock_guard lock(mutex);
    if (--users == 0 && l.threads() != former) l.set_threads(former);
}

}  // namespace lapack
}  // namespace rushlight
