// Locks that are held for less time than it takes to fall asleep.
#pragma once

#include <pthread.h>

#include <mutex>

namespace rushlight {

/// Makes threads that wait for `mutex`, which must be free, spin for a moment before they sleep: for locks that are held
/// for a fraction of a microsecond.
inline void spin_before_sleep(std::mutex& mutex) {
    const pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    *mutex.native_handle() = adaptive;
}

}  // namespace rushlight
