// Starts and stops recording, and defines the functions that dispatch and core's hooks call during it.
#pragma once

#include <atomic>
#include <cstdint>

#include "lane.h"

namespace rushlight::profiler {

/// The data that a session records in addition to times.
enum Wanted : uint64_t { kShapes = 1, kMemory = 2, kStacks = 4 };
inline constexpr int kNumberShift = 8;

namespace detail {
// 0 without a session. Otherwise the session's number in the high bits and the data that it records in the low bits, so
// that one load reads both. The symbol is hidden, like all symbols of this module.
extern std::atomic<uint64_t> session;
extern std::atomic<uint64_t> capacity;
}  // namespace detail

inline uint64_t current_session() { return detail::session.load(std::memory_order_acquire); }

/// Begins a session and records the calling thread. A thread stores at most `capacity` records. Returns false if
/// another session is active.
bool start(uint64_t wanted, uint64_t capacity);
/// Ends the session. Returns false if there was none.
bool stop();
/// Starts to record the calling thread's operators and returns its lane, or null without a session.
Lane* join() noexcept;
/// Returns the calling thread's lane if a session is active.
inline Lane* recording_lane() noexcept {
    uint64_t session = current_session();
    return session ? lane_for(session) : nullptr;
}

/// The data that a session recorded in a lane.
struct LaneRecords {
    uint32_t number;
    int64_t thread_id;
    std::string thread_name;
    std::vector<Record> records;
    std::vector<uint64_t> words;
    uint64_t first_word;  // position of words[0] in the ring
};
struct Recording {
    uint64_t begin, end;  // ticks
    uint64_t start_time;  // nanoseconds since 1970
    uint64_t allocated;   // bytes of host memory in use when the session began
    uint64_t dropped = 0;
    uint64_t bare = 0;  // number of operators whose arguments did not fit
    std::vector<LaneRecords> lanes;
};
/// Removes the records of the last session from the lanes and returns them. May be called only while there is no
/// session. If `release` is true, the memory of the records is returned to the system.
Recording collect(bool release);
/// Returns a copy of what the session has recorded so far, without the spans that are still open. Returns an empty
/// recording if there is no session.
Recording copy_records();

}  // namespace rushlight::profiler
