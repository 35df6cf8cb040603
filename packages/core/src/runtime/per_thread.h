// Values of threads that may be used until the end of the thread.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace rushlight {

/// The value of type T of each thread, which is made when the thread first uses it. `Tag` distinguishes values of the same
/// type.
///
/// Destructors of thread_local variables run before the destructors of pthread keys, and on the main thread before the
/// functions of atexit. Programs in C, and the runtimes of other languages, free their objects in all of these places, and
/// may call operators there. A thread_local variable with a destructor would then be used after its destruction. This
/// value is destroyed as the value of a pthread key; if a later destructor needs it, it is made again.
template <class T, class Tag = T>
class PerThread {
  public:
    /// Throws std::bad_alloc if there is no memory for the value.
    static T& get() { return value_ ? *value_ : make(); }
    /// The value, or null if this thread has not used it.
    static T* get_if() { return value_; }

  private:
    [[gnu::noinline]] static T& make() {
        static const pthread_key_t key = [] {
            pthread_key_t made;
            if (pthread_key_create(&made, end) != 0) throw std::bad_alloc();
            return made;
        }();
        auto made = std::make_unique<T>();
        if (pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
        return *(value_ = made.release());
    }
    static void end(void* value) {
        value_ = nullptr;
        delete static_cast<T*>(value);
    }

    static inline constinit thread_local T* value_ = nullptr;
};

}  // namespace rushlight
