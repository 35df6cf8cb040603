// Shared libraries that are opened when they are first needed.
#pragma once

#include <atomic>
#include <string>

namespace rushlight::detail {

/// A library that is distributed in the folder of librushlight, such as oneDNN. It is opened on first use and never
/// closed. The functions may be called from any thread. They need no lock, since opening a library twice returns
/// the same library.
class LazyLibrary {
  public:
    /// `file` is a name without a folder ("librushlight_dnnl.so").
    explicit constexpr LazyLibrary(const char* file) : file_(file) {}

    bool available() { return open() != nullptr; }
    /// Returns null if the library or the symbol is missing.
    void* symbol(const char* name);
    /// Returns the symbol as a function pointer. Raises RuntimeError with the name of the missing library or function.
    template <class F>
    F* function(const char* name) {
        return reinterpret_cast<F*>(require(name));
    }
    /// The reason why the library could not be opened; empty if it was opened.
    std::string why_not();

  private:
    void* open();
    void* require(const char* name);

    const char* file_;
    std::atomic<void*> handle_{nullptr};
    std::atomic<const std::string*> error_{nullptr};
};

/// The folder of the library or program that contains this code, with a slash at the end; empty if unknown.
std::string own_folder();

}  // namespace rushlight::detail
