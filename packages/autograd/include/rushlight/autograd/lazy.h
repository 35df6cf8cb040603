// An object that is created on first use, possibly by several threads at the same time. Most owners never create it.
#pragma once

#include <atomic>
#include <memory>

namespace rushlight::autograd {

template <class T>
class Lazy {
  public:
    Lazy() = default;
    Lazy(const Lazy&) = delete;
    Lazy& operator=(const Lazy&) = delete;
    ~Lazy() { delete object_.load(std::memory_order_relaxed); }

    /// Returns null if `get()` has not been called yet.
    T* get_or_null() const { return object_.load(std::memory_order_acquire); }
    /// Returns the object. If several threads create an object at once, all of them receive the object that was
    /// stored first.
    T& get() {
        if (T* made = get_or_null()) return *made;
        auto fresh = std::make_unique<T>();
        T* none = nullptr;
        return object_.compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)
                   ? *fresh.release()
                   : *none;
    }

  private:
    std::atomic<T*> object_{nullptr};
};

}  // namespace rushlight::autograd
