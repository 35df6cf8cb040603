// Locks that are held for less time than a thread needs to go to sleep.
#pragma once

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace rushlight {

/// A lock of one byte, for short sections that threads rarely execute at the same time. Taking the lock costs one
/// atomic instruction; releasing it needs none. Threads that wait for the lock yield the processor.
class SpinLock {
  public:
    constexpr SpinLock() = default;
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;
    void lock() noexcept {
        while (held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> held_{false};
};

/// Makes threads that wait for `mutex` spin for a moment before they sleep. Suitable for locks that are held for a
/// fraction of a microsecond. The mutex must not be locked during this call.
inline void spin_before_sleep(std::mutex& mutex) {
    const pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    *mutex.native_handle() = adaptive;
}

}  // namespace rushlight
