// Anomaly mode: nodes store the calls that led to them, and a pass checks for NaN.
#pragma once

#include <atomic>

#include "rushlight/export.h"

namespace rushlight::autograd {

namespace detail {
extern RL_API std::atomic<uint8_t> anomaly;  // bit 0: on; bit 1: look for NaN
}

inline bool anomaly_is_on() { return detail::anomaly.load(std::memory_order_relaxed) & 1; }
inline bool anomaly_checks_nan() { return detail::anomaly.load(std::memory_order_relaxed) == 3; }
inline void set_anomaly(bool on, bool check_nan) {
    detail::anomaly.store(static_cast<uint8_t>(on | (check_nan << 1)));
}

}  // namespace rushlight::autograd
