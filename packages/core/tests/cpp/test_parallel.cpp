// sources: src/runtime/caller_locks.cpp src/runtime/parallel.cpp src/runtime/limits.cpp src/runtime/error.cpp

// Threads: the division of work, errors, and the number of threads.
#include "rushlight/parallel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "check.h"
#include "rushlight/caller_locks.h"

using namespace rushlight;

namespace {

struct Threads {
    explicit Threads(int n) : former(num_threads()) { set_num_threads(n); }
    ~Threads() { set_num_threads(former); }
    int former;
};

/// Returns the number of distinct threads that a region uses.
int team_size() {
    std::atomic<int> members{0};
    parallel_for(0, 64, 1, [&](int64_t, int64_t) { ++members; });
    return members;
}

}  // namespace

TEST(ranges_cover_everything_once) {
    for (int threads : {1, 2, 3, 8}) {
        Threads scope(threads);
        for (int64_t length : {1, 2, 3, 7, 64, 1000, 4097}) {
            for (int64_t grain : {0, 1, 5, 100, 10'000}) {
                std::vector<std::atomic<int>> seen(static_cast<size_t>(length));
                std::atomic<int> short_ranges{0};
                parallel_for(-3, length - 3, grain, [&](int64_t lo, int64_t hi) {
                    CHECK(lo < hi);
                    short_ranges += hi - lo < grain;
                    for (int64_t i = lo; i < hi; ++i) ++seen[static_cast<size_t>(i + 3)];
                });
                for (auto& count : seen) CHECK_EQUAL(count.load(), 1);
                CHECK(short_ranges <= 1);  // only the last range may be short
            }
        }
    }
    bool called = false;
    parallel_for(5, 5, 1, [&](int64_t, int64_t) { called = true; });
    parallel_for(5, -5, 1, [&](int64_t, int64_t) { called = true; });
    parallel_chunks(0, [&](int64_t) { called = true; });
    CHECK(!called);
}

TEST(short_ranges_stay_on_the_calling_thread) {
    Threads scope(4);
    auto caller = std::this_thread::get_id();
    parallel_for(0, 100, 100, [&](int64_t lo, int64_t hi) {
        CHECK(lo == 0 && hi == 100 && std::this_thread::get_id() == caller && !in_parallel());
    });
}

TEST(chunks_are_the_callers) {
    // If the sums of fixed chunks of floats are combined in order, the result has the same bits for any number of
    // threads.
    std::vector<float> values(100'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    std::vector<float> totals;
    for (int threads : {1, 2, 3, 7}) {
        Threads scope(threads);
        std::vector<float> parts(97);
        std::vector<std::atomic<int>> seen(97);
        parallel_chunks(97, [&](int64_t chunk) {
            ++seen[static_cast<size_t>(chunk)];
            for (size_t i = static_cast<size_t>(chunk); i < values.size(); i += 97)
                parts[static_cast<size_t>(chunk)] += values[i];
        });
        for (auto& count : seen) CHECK_EQUAL(count.load(), 1);
        float total = 0;
        for (float part : parts) total += part;
        totals.push_back(total);
    }
    for (float total : totals) CHECK_EQUAL(total, totals[0]);
}

TEST(regions_inside_regions_are_serial) {
    Threads scope(4);
    CHECK(!in_parallel());
    std::atomic<int64_t> sum{0};
    parallel_for(0, 4, 1, [&](int64_t lo, int64_t hi) {
        CHECK(in_parallel());
        auto me = std::this_thread::get_id();
        for (int64_t i = lo; i < hi; ++i) {
            parallel_for(0, 1000, 1, [&](int64_t a, int64_t b) {
                CHECK(std::this_thread::get_id() == me);
                sum += b - a;
            });
            parallel_chunks(10, [&](int64_t) { CHECK(std::this_thread::get_id() == me); });
            CHECK_EQUAL(ThreadLease().threads(), 1);
        }
    });
    CHECK(!in_parallel());
    CHECK_EQUAL(sum.load(), 4000);
}

TEST(exceptions_come_back_as_they_are) {
    for (int threads : {1, 2, 4}) {
        Threads scope(threads);
        CHECK_RAISES(Index, "at 0",
                     parallel_for(0, 1000, 1, [](int64_t lo, int64_t) { throw_index("at %ld", long(lo)); }));
        CHECK_RAISES(Value, "chunk", parallel_chunks(50, [](int64_t chunk) {
                         if (chunk == 7) throw_value("chunk %ld", long(chunk));
                     }));
        bool caught = false;
        try {
            parallel_for(0, 1000, 1, [](int64_t, int64_t hi) {
                if (hi == 1000) throw std::length_error("not ours");
            });
        } catch (const std::length_error&) { caught = true; }
        CHECK(caught);
        CHECK(!in_parallel());
        CHECK_EQUAL(team_size(), threads);  // the threads are available again
    }
}

TEST(the_quota_is_shared) {
    Threads scope(4);
    CHECK_EQUAL(team_size(), 4);
    {
        ThreadLease lease;
        CHECK_EQUAL(lease.threads(), 4);
        std::thread([] {
            CHECK_EQUAL(ThreadLease().threads(),
                        1);  // all threads are reserved, so this thread computes alone
            CHECK_EQUAL(team_size(), 1);
        }).join();
        CHECK_EQUAL(team_size(), 1);
    }
    CHECK_EQUAL(team_size(), 4);
    std::thread([] { CHECK_EQUAL(team_size(), 4); }).join();
}

TEST(many_threads_open_regions) {
    Threads scope(3);
    static std::atomic<int> computing{0}, most{0};
    std::vector<std::thread> callers;
    std::atomic<int64_t> sum{0};
    for (int t = 0; t < 4; ++t) {
        callers.emplace_back([&sum] {
            for (int i = 0; i < 200; ++i) {
                parallel_for(0, 300, 1, [&](int64_t lo, int64_t hi) {
                    int now = ++computing;
                    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
                    sum += hi - lo;
                    --computing;
                });
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK_EQUAL(sum.load(), 4 * 200 * 300);
    CHECK(most <= 4 + 2);  // four callers, and two threads that one of them can reserve
}

TEST(the_number_of_threads_is_checked) {
    CHECK(num_threads() >= 1);
    int former = num_threads();
    CHECK_RAISES(Value, "set_num_threads(n): got 0, needs at least 1", set_num_threads(0));
    CHECK_RAISES(Value, "got -2", set_num_threads(-2));
    CHECK_EQUAL(num_threads(), former);
}

TEST(a_forked_child_computes_alone_but_its_threads_need_not) {
    Threads scope(3);
    CHECK_EQUAL(team_size(), 3);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int before = check::failures;
        CHECK_EQUAL(team_size(), 1);  // its team does not exist in the child; waiting for it would hang
        CHECK_EQUAL(ThreadLease().threads(), 1);
        int64_t sum = 0;
        parallel_chunks(100, [&](int64_t chunk) { sum += chunk; });
        CHECK_EQUAL(sum, 4950);
#if !defined(__SANITIZE_THREAD__)  // which does not support new threads after a fork
        std::thread([] { CHECK_EQUAL(team_size(), 3); }).join();
#endif
        _exit(check::failures != before);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(team_size(), 3);
}

namespace {
// The state of a caller's locks: the number of releases, and whether they are released now.
int released = 0;
bool held = true;
constexpr CallerLocks locks{[](bool) -> void* {
                                if (!held) return nullptr;
                                held = false;
                                return &++released;
                            },
                            [](void*) { held = true; }};

struct CallerWithLocks {
    CallerWithLocks() : former(set_caller_locks(&locks)) { released = 0; }
    ~CallerWithLocks() { set_caller_locks(former); }
    const CallerLocks* former;
};
}  // namespace

TEST(locks_of_the_caller_are_released_once_for_long_work) {
    const CallerWithLocks caller;
    const auto work = [](int64_t, int64_t) { CHECK(!held); };
    for (int threads : {1, 2}) {
        const Threads scope(threads);
        released = 0;
        parallel_for(0, 64, 1, work);
        CHECK_EQUAL(released, 1);
        CHECK(held);
        parallel_chunks(64, [&](int64_t) {
            CHECK(!held);
            parallel_for(0, 64, 1, work);
        });
        CHECK_EQUAL(released, 2);
        CHECK(held);
    }
    parallel_for(0, 64, 64, [](int64_t, int64_t) { CHECK(held); });
    CHECK_EQUAL(released, 2);
}

TEST(locks_of_the_caller_are_taken_again_after_an_error) {
    const CallerWithLocks caller;
    CHECK_RAISES(Value, "work", parallel_for(0, 64, 1, [](int64_t, int64_t) { throw_value("work"); }));
    CHECK_EQUAL(released, 1);
    CHECK(held);
}

TEST(locks_of_the_caller_are_kept_beside_a_lock_of_ours) {
    const CallerWithLocks caller;
    const KeptCallerLocks kept;
    parallel_for(0, 64, 1, [](int64_t, int64_t) { CHECK(held); });
    CHECK_EQUAL(released, 0);
}
