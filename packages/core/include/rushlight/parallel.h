// Threads for kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "rushlight/export.h"

namespace rushlight {

/// The number of threads that a parallel region may use. The initial value is the value of the environment variable
/// OMP_NUM_THREADS. If the variable is not set, the initial value is the number of threads that the affinity mask and
/// the control group's quota allow.
RL_API int num_threads();
/// Sets the number of threads that a parallel region may use in this process. Raises ValueError if `n` is less than 1.
RL_API void set_num_threads(int n);
/// Whether this thread is running a parallel region. A region inside of a parallel region runs on one thread.
RL_API bool in_parallel();

/// Reserves threads for the OpenMP regions that this thread opens next. Used around calls of vendor code, which opens
/// OpenMP regions of its own. All leases of the process together never reserve more than num_threads() threads. If all
/// threads are in use, the lease contains only the calling thread. See Note [Threads].
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

/// Calls `body(lo, hi)` on disjoint ranges that cover [begin, end), one for each thread. Each range except the last has
/// at least `grain` elements. The calling thread alone processes the range if it has fewer than 2 * `grain` elements,
/// or if another parallel region is running on this thread. Rethrows the first exception, in the order of the ranges.
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

/// Calls `body(chunk)` for each chunk of 0 .. count-1, on any thread that is free. Used by reductions whose result must
/// not depend on the number of threads: the caller chooses the chunks, and combines their results in a fixed order.
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
