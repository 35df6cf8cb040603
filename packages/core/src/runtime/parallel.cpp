#include "rushlight/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

// The thread sanitizer does not see the synchronisation inside GCC's OpenMP runtime and would report every region. In
// such a build, and in a build without OpenMP, teams consist of plain threads.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
#define RL_OPENMP_TEAMS 1
#include <omp.h>
#else
#define RL_OPENMP_TEAMS 0
#include <thread>
#include <vector>
#endif

#include "limits.h"
#include "rushlight/caller_locks.h"
#include "rushlight/error.h"

// Note [Threads]
// libgomp keeps one team for each thread that opens regions. It ends and recreates threads if a region requests fewer
// or more threads than the region before. Therefore all regions of a thread request the same number, and threads
// without a share of the work wait at the barrier. Regions of different threads do not share the processors. A region
// reserves all other threads (a lease), or, if a region of another thread has reserved them, runs on the calling thread
// alone.
//
// fork() copies the calling thread but not its team, so the next region would wait for the team without end. Therefore,
// in the child process, this thread always computes alone, also in vendor libraries. Threads that the child starts have
// no team yet and may create one.

namespace rushlight {

namespace {

constexpr auto kComputing = WithoutCallerLocks::While::Computing;

std::atomic<int> limit{0};               // num_threads(); 0 if not determined yet
// The number of threads that are reserved by leases, not counting the threads that hold the leases.
std::atomic<int> lent{0};
thread_local bool working = false;       // whether this thread runs a region
thread_local bool team_is_gone = false;  // whether this thread was forked

int default_threads() {
    if (const char* wish = std::getenv("OMP_NUM_THREADS")) {
        char* rest = nullptr;
        // In a list such as "4,2", the later numbers are for nested regions. Only the first number is used.
        long n = std::strtol(wish, &rest, 10);
        if (rest != wish && n >= 1 && n <= 1 << 16) return static_cast<int>(n);
    }
    return detail::processors_available_to_process();
}

// Installed when the library is loaded, because a thread may have a team that another user of the same OpenMP runtime
// created.
[[gnu::constructor]] void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] {
        lent = 0;
        team_is_gone = true;
    });
}

int borrow() {
    if (working || team_is_gone) return 0;
    int spare = num_threads() - 1;
    if (spare <= 0) return 0;
    int none = 0;
    return lent.compare_exchange_strong(none, spare, std::memory_order_acq_rel) ? spare : 0;
}

void give_back(int extra) {
    if (extra > 0) lent.store(0, std::memory_order_release);
}

/// Stores an exception. If there are exceptions in several ranges, keeps that of the range that begins first.
class FirstError {
  public:
    void keep(int64_t at) {
        std::lock_guard lock(mutex_);
        if (!error_ || at < at_) {
            error_ = std::current_exception();
            at_ = at;
        }
        any_.store(true, std::memory_order_relaxed);
    }
    bool any() const { return any_.load(std::memory_order_relaxed); }
    void rethrow() {
        if (error_) std::rethrow_exception(std::move(error_));
    }

  private:
    std::mutex mutex_;
    std::exception_ptr error_;
    int64_t at_ = 0;
    std::atomic<bool> any_{false};
};

/// Runs `member(i)` for i in 0 .. threads-1, each on its own thread. Index 0 runs on the calling thread.
template <class F>
void run_team(int threads, F&& member) {
#if RL_OPENMP_TEAMS
#pragma omp parallel num_threads(threads)
    {
        working = true;
        // The runtime may provide fewer threads than requested.
        for (int i = omp_get_thread_num(); i < threads; i += omp_get_num_threads()) member(i);
        working = false;
    }
#else
    auto work = [&member](int i) {
        working = true;
        member(i);
        working = false;
    };
    std::vector<std::thread> team;
    for (int i = 1; i < threads; ++i) team.emplace_back(work, i);
    work(0);
    for (std::thread& thread : team) thread.join();
#endif
}

}  // namespace

int num_threads() {
    int n = limit.load(std::memory_order_relaxed);
    if (__builtin_expect(n == 0, 0)) {
        int expected = 0;
        n = default_threads();
        if (!limit.compare_exchange_strong(expected, n)) n = expected;
    }
    return n;
}

void set_num_threads(int n) {
    RL_CHECK(n >= 1, throw_value, "set_num_threads(n): got %d, needs at least 1", n);
    limit.store(n, std::memory_order_relaxed);
}

bool in_parallel() { return working; }

ThreadLease::ThreadLease() : extra_(borrow()) {
#if RL_OPENMP_TEAMS
    omp_set_num_threads(1 + extra_);
#endif
}

ThreadLease::~ThreadLease() { give_back(extra_); }

namespace detail {

void run_ranges(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context) {
    const WithoutCallerLocks others_run(kComputing, !working);
    int64_t length = end - begin, most = length / std::max<int64_t>(grain, 1);
    int extra = most > 1 ? borrow() : 0;
    if (extra == 0) return body(context, begin, end);
    int64_t parts = std::min<int64_t>(1 + extra, most);
    int64_t part = (length + parts - 1) / parts;
    FirstError error;
    run_team(1 + extra, [&](int i) {
        int64_t lo = begin + i * part, hi = std::min(lo + part, end);
        if (lo >= hi) return;
        try {
            body(context, lo, hi);
        } catch (...) { error.keep(i); }
    });
    give_back(extra);
    error.rethrow();
}

void run_chunks(int64_t count, RangeBody body, void* context) {
    const WithoutCallerLocks others_run(kComputing, !working);
    int extra = borrow();
    if (extra == 0) return body(context, 0, count);
    std::atomic<int64_t> next{0};
    FirstError error;
    run_team(1 + extra, [&](int) {
        for (int64_t i; !error.any() && (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            try {
                body(context, i, i + 1);
            } catch (...) { error.keep(i); }
        }
    });
    give_back(extra);
    error.rethrow();
}

}  // namespace detail
}  // namespace rushlight
