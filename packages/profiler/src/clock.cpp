#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rushlight::profiler {
namespace {

bool counter_is_even() {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);  // "invariant TSC"
#else
    return false;
#endif
}

// 5 ms. The two moments are accurate to about 50 ns, so the relative error of the rate is about 1e-5.
constexpr uint64_t kShortestBase = 5'000'000;

}  // namespace

const bool has_counter = counter_is_even();

namespace {
const Moment loaded = measure_moment();  // defined after has_counter, which measure_moment reads
}

Moment measure_moment() {
    // Make several attempts, and use the attempt with the shortest time between its two readings of the counter.
    Moment best{};
    uint64_t least = ~uint64_t{0};
    for (int i = 0; i < 5; ++i) {
        uint64_t before = ticks();
        uint64_t ns = nanoseconds(CLOCK_MONOTONIC);
        uint64_t width = ticks() - before;
        if (width < least) {
            least = width;
            best = {before + width / 2, ns};
        }
    }
    return best;
}

TimeScale::TimeScale(uint64_t origin_ticks) : origin_(origin_ticks), rate_(1) {
    if (!has_counter) return;
    Moment now = measure_moment();
    while (now.nanoseconds - loaded.nanoseconds < kShortestBase) {
        timespec pause{0, 1'000'000};
        nanosleep(&pause, nullptr);
        now = measure_moment();
    }
    rate_ = static_cast<double>(now.nanoseconds - loaded.nanoseconds) /
            static_cast<double>(now.ticks - loaded.ticks);
}

}  // namespace rushlight::profiler
