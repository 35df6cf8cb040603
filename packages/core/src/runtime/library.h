// Shared libraries that are opened when something first needs them.
#pragma once

#include <atomic>
#include <string>

namespace rushlight::detail {

/// A library beside this one (vendor code that ships with core), opened on first use and never closed.
/// Functions may be called from any thread; none holds a lock, since opening a library twice gives the same
/// one.
class LazyLibrary {
  public:
    /// `file` is a name without a folder ("librushlight_dnnl.so").
    explicit constexpr LazyLibrary(const char* file) : file_(file) {}

    bool available() { return open() != nullptr; }
    /// Null when the library or the symbol is missing.
    void* symbol(const char* name);
    /// The same as a function pointer; RuntimeError that names what is missing.
    template <class F>
    F* function(const char* name) {
        return reinterpret_cast<F*>(require(name));
    }
    /// Why it could not be opened; empty when it could.
    std::string why_not();

  private:
    void* open();
    void* require(const char* name);

    const char* file_;
    std::atomic<void*> handle_{nullptr};
    std::atomic<const std::string*> error_{nullptr};
};

/// The folder of the library or program that holds this code, with a slash at its end; empty when unknown.
std::string own_folder();

}  // namespace rushlight::detail
