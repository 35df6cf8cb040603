// The memory behind tensors: its owner, its version, and whether it may be written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rushlight/device.h"
#include "rushlight/intrusive.h"
#include "rushlight/site.h"

namespace rushlight {

enum class StorageKind : uint8_t {
    Cached,   // from our allocator
    Foreign,  // memory of another library, kept until `release` is called
    Pinned,   // page-locked, for transfers
    Shared,   // mapped by other processes, too
    Mapped,   // a file
};

/// The function that frees a storage's memory. `context` is chosen by the storage's creator. A null function does
/// nothing.
using ReleaseFn = void (*)(void* context, void* data, size_t nbytes);

/// Counts the writes through a tensor obtained by `.data` and through its views: Note [Versions].
class VersionCounter : public RefCounted {
  public:
    explicit VersionCounter(uint32_t value) : value_(value) {}
    static void destroy(VersionCounter* counter) { delete counter; }

    uint32_t value() const { return value_.load(std::memory_order_relaxed); }
    void bump(Site site) {
        value_.fetch_add(1, std::memory_order_relaxed);
        writer_.store(site, std::memory_order_relaxed);
    }
    Site writer() const { return writer_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint32_t> value_;
    std::atomic<Site> writer_{0};
};

class RL_API Storage : public RefCounted {
  public:
    /// Allocates new, uninitialised memory on the device. A storage on the meta device has a size and no memory.
    static Ref<Storage> allocate(size_t nbytes, Device device);
    /// Makes a storage of existing memory. `release` is called once, on any thread, when the last reference to the
    /// storage is dropped.
    static Ref<Storage> wrap(void* data, size_t nbytes, Device device, StorageKind kind, ReleaseFn release,
                             void* context);
    static void destroy(Storage* storage);

    /// The address of the memory. Null for an empty storage, on the meta device, and while the memory is packed (see
    /// `packed`).
    void* data() const { return data_; }
    size_t nbytes() const { return nbytes_; }
    Device device() const { return device_; }
    StorageKind kind() const { return kind_; }
    /// Tensors over read-only memory are read-only: every in-place write raises an error.
    bool read_only() const { return guards_.load(std::memory_order_relaxed) & kReadOnly; }
    void set_read_only() { guards_.fetch_or(kReadOnly, std::memory_order_relaxed); }
    /// Whether a write must be checked first: the memory is read-only, or it is pinned and a copy may be using it.
    bool guarded() const { return guards_.load(std::memory_order_relaxed) != 0; }
    void set_copied(bool on) {
        on ? guards_.fetch_or(kCopied, std::memory_order_relaxed)
           : guards_.fetch_and(static_cast<uint8_t>(~kCopied), std::memory_order_relaxed);
    }

    /// Counts the writes through all tensors over this memory that have no separate counter: Note [Versions].
    uint32_t version() const { return version_.load(std::memory_order_relaxed); }
    void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }
    /// Forgets all writes. The caller must hold the only reference to the storage.
    void restart_versions() {
        version_.store(0, std::memory_order_relaxed);
        writer_.store(0, std::memory_order_relaxed);
    }
    /// The site of the last write: Note [Sites].
    Site writer() const { return writer_.load(std::memory_order_relaxed); }
    void set_writer(Site site) { writer_.store(site, std::memory_order_relaxed); }

    /// Replaces the memory with memory of another size, and copies the old contents as far as they fit. Requires
    /// StorageKind::Cached. Raises RuntimeError while the address is exported. `what` names the operator and its argument
    /// in errors.
    void resize(const char* what, size_t nbytes);

    /// Copies the bytes to the memory of `target`, and keeps `target` alive. Every tensor over this storage then uses
    /// the memory of `target`. If the address of the old memory is exported (`exports`), the old memory is freed only
    /// when this storage is destroyed. Both memories must be on the CPU, and no other thread may write to them during
    /// the call. Pass true as `is_copied` if the bytes are already in the memory of `target`, for example because they
    /// were written to the file that `target` maps.
    void move_to(Ref<Storage> target, bool is_copied = false);

    /// The number of NumPy arrays, DLPack capsules and buffers that use this memory by its address.
    uint32_t exports() const { return exports_.load(std::memory_order_acquire); }
    void add_export() { exports_.fetch_add(1, std::memory_order_relaxed); }
    void drop_export() { exports_.fetch_sub(1, std::memory_order_release); }

    /// The function that frees the memory, and its argument; null if there is nothing to do.
    ReleaseFn release_function() const { return release_; }
    void* release_context() const { return context_; }

    /// Reserved for memory in a vendor's blocked layout (design section 4); null for strided memory.
    void* packed() const { return packed_; }

    ~Storage() = default;

  private:
    Storage() = default;

    void* data_ = nullptr;
    size_t nbytes_ = 0;
    ReleaseFn release_ = nullptr;  // null for Cached
    void* context_ = nullptr;
    void* packed_ = nullptr;
    std::atomic<uint32_t> version_{0};
    std::atomic<uint32_t> exports_{0};
    std::atomic<Site> writer_{0};
    Device device_{};
    StorageKind kind_ = StorageKind::Cached;
    static constexpr uint8_t kReadOnly = 1, kCopied = 2;
    std::atomic<uint8_t> guards_{0};
};

}  // namespace rushlight
