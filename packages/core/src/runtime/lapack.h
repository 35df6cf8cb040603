// Routines of LAPACK and BLAS, found when they are first called. Note [LAPACK].
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rushlight/lapack.h"

namespace rushlight::lapack {

// Note [LAPACK]
// Core links no LAPACK. The first routine that is called opens one: what RUSHLIGHT_LAPACK names; else what the finder of
// the bindings names, which is the copy of OpenBLAS that comes with NumPy; else one of the system. Libraries spell the same
// routine differently: scipy_dgesv_64_, dgesv_64_, dgesv64_ (64-bit integers), dgesv_ (32-bit ones). Fortran takes
// everything by address. Numbers that go in are 64 bits wide here, and a library of 32 bits reads their low half (this is
// little-endian); numbers that come out begin as 0 and are sign-extended (`Int`). Only arrays of integers have to be
// as wide as the library's (`set_int_at`).

/// Integers of the library are 64 bits wide. Opens it: RuntimeError when there is none.
bool is_wide();

/// One routine. Its arguments: `char` and `int64_t` by value, alpha and beta as `const T&`, all else as pointers.
class Routine {
  public:
    /// `name` as Fortran has it, without an underscore: "dgesv".
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
    // Compilers of Fortran expect the length of every character after all else.
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

/// Element i of an array of the library's integers.
inline int64_t int_at(const void* array, int64_t i) {
    return is_wide() ? static_cast<const int64_t*>(array)[i] : static_cast<const int32_t*>(array)[i];
}
inline void set_int_at(void* array, int64_t i, int64_t value) {
    if (is_wide()) static_cast<int64_t*>(array)[i] = value;
    else static_cast<int32_t*>(array)[i] = static_cast<int32_t>(value);
}

/// The library's own threads, for a scope. See Note [LAPACK threads].
class Threads {
  public:
    explicit Threads(int threads);
    ~Threads();
    Threads(const Threads&) = delete;
};

}  // namespace rushlight::lapack
