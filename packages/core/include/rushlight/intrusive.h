// Reference counting for objects that C++ and Python share.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace rushlight {

/// A reference count that starts at one, for the creator's reference. A derived type T defines the function that
/// destroys its objects: `static void destroy(T*)`.
class RefCounted {
  public:
    void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
    /// Drops a reference. Returns true if it was the last reference.
    bool drop() const noexcept {
        // If this is the only reference, no atomic instruction is needed: no other thread can copy or drop a reference.
        if (refs_.load(std::memory_order_acquire) == 1) {
            refs_.store(0, std::memory_order_relaxed);
            return true;
        }
        return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    /// Adds a reference and returns true, or returns false if the object's destruction has begun. Used by code that
    /// stores a plain pointer to the object and, when the object is destroyed, removes the pointer under a lock.
    bool try_retain() const noexcept {
        uint32_t n = refs_.load(std::memory_order_relaxed);
        while (n && !refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) {}
        return n != 0;
    }
    uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }

  protected:
    RefCounted() = default;
    ~RefCounted() = default;
    RefCounted(const RefCounted&) = delete;
    RefCounted& operator=(const RefCounted&) = delete;

    mutable std::atomic<uint32_t> refs_{1};
};

/// An owning pointer to a RefCounted object; may be null.
template <class T>
class Ref {
  public:
    Ref() = default;
    Ref(std::nullptr_t) {}
    /// Adds a reference.
    static Ref share(T* p) {
        if (p) p->retain();
        return Ref(p);
    }
    /// Takes over a reference that the caller owns.
    static Ref adopt(T* p) { return Ref(p); }

    Ref(const Ref& other) : p_(other.p_) {
        if (p_) p_->retain();
    }
    Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Ref& operator=(const Ref& other) {
        Ref(other).swap(*this);
        return *this;
    }
    Ref& operator=(Ref&& other) noexcept {
        Ref(std::move(other)).swap(*this);
        return *this;
    }
    ~Ref() {
        if (p_ && p_->drop()) T::destroy(p_);
    }

    T* get() const { return p_; }
    T* operator->() const { return p_; }
    T& operator*() const { return *p_; }
    explicit operator bool() const { return p_ != nullptr; }
    /// Returns the pointer and passes the ownership of the reference to the caller.
    T* release() { return std::exchange(p_, nullptr); }
    void swap(Ref& other) noexcept { std::swap(p_, other.p_); }
    void reset() { Ref().swap(*this); }
    friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

  private:
    explicit Ref(T* p) : p_(p) {}
    T* p_ = nullptr;
};

}  // namespace rushlight
