// Threads for kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "rushlight/export.h"

namespace rushlight {

/// How many threads a region may use; at first OMP_NUM_THREADS, else what the affinity mask and the control
/// group's quota allow.
RL_API int num_threads();
/// Sets it for the whole process. ValueError below 1.
RL_API void set_num_threads(int n);
/// Whether this thread is running a parallel region; regions inside of it are serial.
RL_API bool in_parallel();

/// Threads for this thread's next OpenMP regions, for vendor code that opens its own. All leases of the
/// process together stay within num_threads(): a lease that finds all threads taken gets only the calling thread. See
/// Note [Threads].
class RL_API ThreadLease {
  public:
    ThreadLease();
    ~ThreadLease();
    ThreadLease(const ThreadLease&) = delete;
    ThreadLease& operator=(const ThreadLease&) = delete;

    int threads() const { return 1 + extra_; }

  private:
    int extra_ = 0;
};

namespace detail {
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
RL_API void run_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context);
RL_API void run_chunks(int64_t count, RangeBody body, void* context);
}  // namespace detail

/// Calls `body(lo, hi)` on disjoint ranges that cover [begin, end), each but the last at least `grain` long,
/// one per thread. Serial inside another region, and when the range is shorter than two grains. The first
/// exception, in the order of the ranges, is carried to the caller.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& body) {
    if (end <= begin) return;
    if (end - begin <= grain) {
        body(begin, end);
        return;
    }
    detail::run_ranges(
        begin, end, grain,
        [](void* context, int64_t lo, int64_t hi) {
            (*static_cast<std::remove_reference_t<F>*>(context))(lo, hi);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
}

/// Calls `body(chunk)` for each chunk of 0 .. count-1, whichever thread is free. For reductions whose result
/// must not depend on the number of threads: the caller fixes the chunks, and combines their results in order
/// afterwards.
template <class F>
void parallel_chunks(int64_t count, F&& body) {
    if (count <= 0) return;
    if (count == 1) {
        body(int64_t{0});
        return;
    }
    detail::run_chunks(
        count,
        [](void* context, int64_t lo, int64_t hi) {
            for (int64_t chunk = lo; chunk < hi; ++chunk)
                (*static_cast<std::remove_reference_t<F>*>(context))(chunk);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace rushlight
