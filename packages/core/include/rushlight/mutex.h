// Locks that are held for less time than it takes to fall asleep.
#pragma once

#include <pthread.h>

#include <mutex>

namespace rushlight {

/// Makes whoever waits for `mutex`, which nobody holds yet, spin for a moment before it sleeps: for locks that are held
/// for a fraction of a microsecond.
inline void spin_before_sleep(std::mutex& mutex) {
    const pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    *mutex.native_handle() = adaptive;
}

}  // namespace rushlight
