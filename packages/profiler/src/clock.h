// Time stamps that take a few nanoseconds, and their conversion.
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rushlight::profiler {

inline uint64_t nanoseconds(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

/// Whether the processor has a time stamp counter with a constant rate, at any clock frequency and in sleep states.
extern const bool has_counter;

/// Returns the current time in ticks of the counter, or in nanoseconds if there is no counter.
inline uint64_t ticks() {
#if defined(__x86_64__)
    if (has_counter) [[likely]]
        return __rdtsc();
#endif
    return nanoseconds(CLOCK_MONOTONIC);
}

/// A point in time, measured on both clocks.
struct Moment {
    uint64_t ticks, nanoseconds;
};
Moment measure_moment();

/// Converts ticks to nanoseconds since an origin. The rate of the counter is measured over the time between the
/// loading of this module and the creation of the scale. The constructor waits if this time is too short.
class TimeScale {
  public:
    explicit TimeScale(uint64_t origin_ticks);
    int64_t operator()(uint64_t ticks) const {
        return static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(ticks - origin_)) * rate_);
    }

  private:
    uint64_t origin_;
    double rate_;
};

}  // namespace rushlight::profiler
