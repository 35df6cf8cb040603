// Selects which of the two compiled copies of the kernels runs on this processor.
//
// Note [Kernels compiled twice]
// Every file in src/cpu/kernels/ is compiled once for x86-64-v3 (AVX2) and once for x86-64-v4 (AVX-512), with
// RUSHLIGHT_CPU set to `avx2` or `avx512`. Its code is in `namespace rushlight::cpu::RUSHLIGHT_CPU`, and is called
// through a single table of function pointers. No other symbol may have the same name in both copies: the linker
// would keep only one of the two definitions, and an AVX2 machine could execute AVX-512 code. So these files use no
// standard container or algorithm, and code that they share with the rest of the library is `static`, a template
// over a local type, or marked always_inline.
#pragma once

#include <atomic>
#include <cstdint>

#include "rushlight/export.h"

// The build determines which copies exist (CpuKernels.cmake). A build for one machine has one copy.
#if !defined(RUSHLIGHT_HAVE_AVX2) && !defined(RUSHLIGHT_HAVE_AVX512)
#define RUSHLIGHT_HAVE_AVX2 1
#define RUSHLIGHT_HAVE_AVX512 1
#endif

namespace rushlight::cpu {

enum class Capability : uint8_t { Unknown, AVX2, AVX512 };

namespace detail {
extern std::atomic<Capability> chosen;
Capability choose();
}  // namespace detail

/// Returns the capability in use. This is the best capability that both the processor and the build support, unless the
/// environment variable RUSHLIGHT_CPU_CAPABILITY selects another one ("avx2", "avx512"). Raises RuntimeError if the
/// selected capability is not available.
inline Capability capability() {
    Capability c = detail::chosen.load(std::memory_order_relaxed);
    return __builtin_expect(c != Capability::Unknown, 1) ? c : detail::choose();
}

/// Returns "avx2" or "avx512".
RL_API const char* name(Capability capability);

template <class Table>
const Table& select(const Table& avx2, const Table& avx512) {
    return capability() == Capability::AVX512 ? avx512 : avx2;
}

}  // namespace rushlight::cpu

// RUSHLIGHT_KERNEL_TABLE(PoolKernels, pool_kernels), in namespace rushlight::cpu, declares the table that
// kernels/pool.cpp defines and a function pool_kernels() that returns the copy to use.
#if defined(RUSHLIGHT_HAVE_AVX2) && defined(RUSHLIGHT_HAVE_AVX512)
#define RUSHLIGHT_KERNEL_TABLE(Table, table) \
    namespace avx2 {                         \
    extern const Table table##_table;        \
    }                                        \
    namespace avx512 {                       \
    extern const Table table##_table;        \
    }                                        \
    inline const Table& table() { return select(avx2::table##_table, avx512::table##_table); }
#elif defined(RUSHLIGHT_HAVE_AVX512)
#define RUSHLIGHT_KERNEL_TABLE(Table, table) \
    namespace avx512 {                       \
    extern const Table table##_table;        \
    }                                        \
    inline const Table& table() { return avx512::table##_table; }
#else
#define RUSHLIGHT_KERNEL_TABLE(Table, table) \
    namespace avx2 {                         \
    extern const Table table##_table;        \
    }                                        \
    inline const Table& table() { return avx2::table##_table; }
#endif
