// Decides which unused memory an allocator keeps, and for how long.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rushlight::detail {

/// Note [How long memory is kept]
/// Unused memory is returned to the system after one second. If the program has recently reused this amount of memory
/// after a longer pause, the memory is kept for twice the length of that pause. For example, a loop whose steps take
/// twenty seconds keeps the memory of its peak, while the memory of a peak that does not recur is returned after one
/// second.
///
/// The period of some memory is the time from one allocation of this memory to the next. If the memory was kept in
/// between, the period is measured directly. If the memory was returned, newly mapped memory counts as a reuse of it,
/// because a kept block would have been used in its place. The period of a loop is therefore measured in its second
/// step.
///
/// Reused bytes are counted separately for each class of periods. The longest period of each class is twice the longest
/// period of the previous class. A count expires after four to eight times the longest period of its class. Memory is
/// not kept for periods above a minute, because the page faults that this would save take a negligible part of the
/// time.
///
/// Not thread-safe: an allocator calls it under its lock.
class RecentUse {
  public:
    static constexpr uint64_t kKeepMs = 1000;   // the time for which all memory is kept after its last use
    // Time between two checks for memory that is due to be returned.
    static constexpr uint64_t kLookMs = 250;
    static constexpr uint64_t kLookSoonMs = 10; // if memory is short, or if no memory is unused
    static constexpr uint64_t kLongestPeriodMs = uint64_t{512} << 7;

    /// Records that `nbytes`, which were allocated at `taken` and then released, are allocated again.
    void used_again(size_t nbytes, uint64_t taken, uint64_t now) {
        if (now - taken >= kKeepMs / 2) count(nbytes, now - taken, now);
    }

    /// Records that `nbytes`, which were last allocated at `taken`, are returned to the system.
    void given_back(size_t nbytes, uint64_t taken) {
        Returned& entry = returned_[taken / kTickMs % kTicks];
        if (entry.tick != taken / kTickMs) entry = {taken / kTickMs, 0};
        entry.nbytes += nbytes;
    }

    /// Records that the system has to supply `nbytes`.
    void missed(size_t nbytes, uint64_t now) {
        uint64_t tick = now / kTickMs;
        for (uint64_t age = std::min(kTicks, tick + 1); age-- > 0 && nbytes > 0;) {
            Returned& entry = returned_[(tick - age) % kTicks];
            if (entry.tick != tick - age || entry.nbytes == 0) continue;
            size_t served = std::min(nbytes, entry.nbytes);
            entry.nbytes -= served;
            nbytes -= served;
            count(served, now - entry.tick * kTickMs, now);
        }
    }

  private:
    static constexpr int kClasses = 8;
    static constexpr uint64_t kTickMs = 1024, kTicks = kLongestPeriodMs / kTickMs;

    struct Count {
        size_t nbytes;
        uint64_t longest;  // the longest period
    };
    struct Class {
        Count recent, former;
        uint64_t since;  // the time at which `recent` began
    };
    struct Returned {
        uint64_t tick;  // the time at which the bytes were last allocated
        size_t nbytes;
    };

    static uint64_t longest_period(int index) { return uint64_t{512} << index; }

    void age(int index, uint64_t now) {
        Class& c = classes_[static_cast<size_t>(index)];
        uint64_t span = 4 * longest_period(index);
        if (now < c.since + span) return;
        c.former = now < c.since + 2 * span ? c.recent : Count{};
        c.recent = {};
        c.since = now;
    }

    void count(size_t nbytes, uint64_t period, uint64_t now) {
        if (period > kLongestPeriodMs) return;
        int index = period <= longest_period(0) ? 0 : std::bit_width((period - 1) / longest_period(0));
        age(index, now);
        Count& counted = classes_[static_cast<size_t>(index)].recent;
        counted.nbytes += nbytes;
        counted.longest = std::max(counted.longest, period);
    }

    std::array<Class, kClasses> classes_ = {};
    std::array<Returned, kTicks> returned_ = {};

  public:
    /// Decides which unused memory is returned to the system now. First, `count` is called for each part of the unused
    /// memory, and then `keeps` is called for each part. If only some of the memory can be kept, the memory that was
    /// used last is kept.
    class Choice {
      public:
        Choice(RecentUse& use, uint64_t now) : now_(now) {
            uint64_t longest = 0;
            for (int i = 0; i < kClasses; ++i) {
                use.age(i, now);
                const Class& c = use.classes_[static_cast<size_t>(i)];
                longest = std::max({longest, c.recent.longest, c.former.longest});
                allowed_[static_cast<size_t>(i)] = c.recent.nbytes + c.former.nbytes;
                keep_ms_[static_cast<size_t>(i)] = 2 * longest;
            }
        }

        void count(size_t nbytes, uint64_t released) {
            if (released + kKeepMs > now_) return;
            if (size_t index = youngest(released); index < kClasses) kept_[index] += nbytes;
        }
        /// Called after all calls of `count` and before the first call of `keeps`.
        void decide() {
            for (size_t i = 0; i < kClasses; ++i) {
                size_t wanted = kept_[i];
                for (size_t from = i; from < kClasses; ++from) {
                    size_t part = std::min(wanted, allowed_[from]);
                    allowed_[from] -= part;
                    wanted -= part;
                }
                kept_[i] -= wanted;
            }
        }
        bool keeps(size_t nbytes, uint64_t released) {
            if (released + kKeepMs > now_) return true;
            size_t index = youngest(released);
            if (index == kClasses || kept_[index] < nbytes) return false;
            kept_[index] -= nbytes;
            return true;
        }

      private:
        /// Returns the class with the shortest periods among those that still keep memory that was released at the time
        /// `released`.
        size_t youngest(uint64_t released) const {
            size_t i = 0;
            while (i < kClasses && released + keep_ms_[i] <= now_) ++i;
            return i;
        }

        uint64_t now_;
        std::array<uint64_t, kClasses> keep_ms_;
        std::array<size_t, kClasses> allowed_, kept_ = {};
    };
};

}  // namespace rushlight::detail
