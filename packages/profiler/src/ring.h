// A bounded queue between one writing thread and one reading thread. Pages of its memory are used only when items are
// written.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <type_traits>

namespace rushlight::profiler {

// Positions only increase; the index of an item is its position modulo the capacity. The writer never waits: if there
// is no room, it keeps the old items and drops the new item. The records of child spans are written before the record
// of their parent. So if a span was stored, all of its children were stored too, and the time spent in the span itself
// is exact.
template <class T>
class Ring {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit Ring(uint64_t capacity) : capacity_(std::bit_ceil(capacity)) {
        void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        items_ = static_cast<T*>(memory);
    }
    ~Ring() { munmap(items_, bytes()); }
    Ring(const Ring&) = delete;

    uint64_t capacity() const { return capacity_; }
    T& operator[](uint64_t position) { return items_[position & (capacity_ - 1)]; }

    // The writer fills slots from `end` on, at most `room` of them, and then publishes.
    uint64_t end() const { return end_.load(std::memory_order_relaxed); }
    uint64_t room() const { return capacity_ - (end() - begin_.load(std::memory_order_acquire)); }
    void publish(uint64_t end) { end_.store(end, std::memory_order_release); }

    // The reader reads from `begin` to `published`, and then releases the slots.
    uint64_t begin() const { return begin_.load(std::memory_order_relaxed); }
    uint64_t published() const { return end_.load(std::memory_order_acquire); }
    void consume(uint64_t end) { begin_.store(end, std::memory_order_release); }
    /// Returns the memory to the system. The writer may write at the same time, if all items have been read.
    void release_pages() { madvise(items_, bytes(), MADV_DONTNEED); }

  private:
    size_t bytes() const { return capacity_ * sizeof(T); }

    const uint64_t capacity_;
    T* items_;
    std::atomic<uint64_t> begin_{0}, end_{0};
};

}  // namespace rushlight::profiler
