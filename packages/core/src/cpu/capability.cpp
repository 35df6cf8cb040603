#include "cpu/capability.h"

#include <cstdlib>
#include <cstring>

#include "rushlight/error.h"

namespace rushlight::cpu {
namespace detail {

std::atomic<Capability> chosen{Capability::Unknown};

namespace {

// The builtins execute cpuid, and XGETBV to check that the operating system saves the vector registers.
bool processor_has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
}

bool processor_has_avx512() {
    return processor_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

bool build_has(Capability c) {
#if defined(RUSHLIGHT_HAVE_AVX2)
    if (c == Capability::AVX2) return true;
#endif
#if defined(RUSHLIGHT_HAVE_AVX512)
    if (c == Capability::AVX512) return true;
#endif
    return false;
}

bool can_use(Capability c) {
    return build_has(c) && (c == Capability::AVX512 ? processor_has_avx512() : processor_has_avx2());
}

Capability requested() {
    const char* text = std::getenv("RUSHLIGHT_CPU_CAPABILITY");
    if (text == nullptr || *text == '\0') return Capability::Unknown;
    Capability c = std::strcmp(text, "avx2") == 0     ? Capability::AVX2
                   : std::strcmp(text, "avx512") == 0 ? Capability::AVX512
                                                      : Capability::Unknown;
    RL_CHECK(c != Capability::Unknown, throw_runtime,
             "RUSHLIGHT_CPU_CAPABILITY: must be \"avx2\" or \"avx512\", got \"%s\"", text);
    RL_CHECK(can_use(c), throw_runtime, "RUSHLIGHT_CPU_CAPABILITY is \"%s\", which this %s does not support",
             text, build_has(c) ? "processor" : "build");
    return c;
}

}  // namespace

Capability choose() {
    Capability c = requested();
    if (c == Capability::Unknown) {
        if (can_use(Capability::AVX512)) {
            c = Capability::AVX512;
        } else if (can_use(Capability::AVX2)) {
            c = Capability::AVX2;
        } else {
            throw_runtime("this build of rushlight needs a processor with %s",
                          build_has(Capability::AVX2) ? "AVX2 and FMA (x86-64-v3)" : "AVX-512 (x86-64-v4)");
        }
    }
    chosen.store(c, std::memory_order_relaxed);
    return c;
}

}  // namespace detail

const char* name(Capability c) {
    switch (c) {
        case Capability::AVX2: return "avx2";
        case Capability::AVX512: return "avx512";
        default: return "unknown";
    }
}

}  // namespace rushlight::cpu
