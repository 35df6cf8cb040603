// Routines of LAPACK and BLAS, which are looked up when they are first called. Note [LAPACK].
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rushlight/lapack.h"

namespace rushlight::lapack {

// Note [LAPACK]
// Core is not linked against LAPACK. The first call of a routine opens a library. The candidates are, in this order:
// the library in RUSHLIGHT_LAPACK; the libraries that the finder of the bindings returns, which are usually NumPy's
// copy of OpenBLAS; the libraries of the system. Libraries have different names for the same routine: scipy_dgesv_64_,
// dgesv_64_, dgesv64_ (64-bit integers), dgesv_ (32-bit integers). Fortran passes all arguments by address. Integers
// that are passed to a routine have 64 bits here; a library with 32-bit integers reads the low half, since the machine
// is little-endian. Integers that a routine returns are initialised with 0 and sign-extended (`Int`). Only arrays of
// integers must have the integer width of the library (`set_int_at`).

/// Whether the library's integers have 64 bits. Opens the library, and raises RuntimeError if there is none.
bool is_wide();

/// A routine of LAPACK. Arguments of type `char` and `int64_t` are passed by value, alpha and beta as `const T&`, and
/// all other arguments as pointers.
class Routine {
  public:
    /// `name` is the Fortran name without an underscore: "dgesv".
    explicit constexpr Routine(const char* name) : name_(name) {}

    template <class... A>
    void operator()(const A&... arguments) {
        constexpr size_t characters = (size_t{0} + ... + std::is_same_v<A, char>);
        void* function = function_.load(std::memory_order_acquire);
        if (!function) [[unlikely]]
            function = find();
        call(function, std::make_index_sequence<characters>(), address(arguments)...);
    }

  private:
    template <class T>
    static const void* address(const T& value) {
        return &value;
    }
    template <class T>
    static const void* address(T* const& pointer) {
        return pointer;
    }
    // Fortran compilers expect the lengths of all character arguments after the other arguments.
    template <size_t... I, class... A>
    static void call(void* function, std::index_sequence<I...>, A... addresses) {
        reinterpret_cast<void (*)(A..., decltype(I)...)>(function)(addresses...,
                                                                   (static_cast<void>(I), size_t{1})...);
    }
    void* find();

    const char* name_;
    std::atomic<void*> function_{nullptr};
};

/// An integer that a routine returns: INFO, RANK.
class Int {
  public:
    int64_t* out() { return &value_; }
    int64_t get() const { return is_wide() ? value_ : static_cast<int32_t>(value_); }

  private:
    int64_t value_ = 0;
};

/// Element i of an array of integers of the library's width.
inline int64_t int_at(const void* array, int64_t i) {
    return is_wide() ? static_cast<const int64_t*>(array)[i] : static_cast<const int32_t*>(array)[i];
}
inline void set_int_at(void* array, int64_t i, int64_t value) {
    if (is_wide()) static_cast<int64_t*>(array)[i] = value;
    else static_cast<int32_t*>(array)[i] = static_cast<int32_t>(value);
}

/// Sets the number of the library's own threads for a scope. See Note [LAPACK threads].
class Threads {
  public:
    explicit Threads(int threads);
    ~Threads();
    Threads(const Threads&) = delete;
};

}  // namespace rushlight::lapack
