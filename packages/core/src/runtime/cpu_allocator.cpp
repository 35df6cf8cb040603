// The default allocator of host memory: small blocks, and a caching allocator over huge pages.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "caching_allocator.h"
#include "limits.h"
#include "pages.h"
#include "rushlight/allocator.h"
#include "rushlight/error.h"
#include "small_blocks.h"

namespace rushlight {
namespace detail {

namespace {

class HostDriver final : public Driver {
  public:
    void* map(size_t nbytes) noexcept override { return fits(nbytes) ? map_pages(nbytes, true) : nullptr; }
    void unmap(void* data, size_t nbytes) noexcept override { unmap_pages(data, nbytes); }
    void discard(void* data, size_t nbytes) noexcept override { discard_pages(data, nbytes); }
    uint64_t now_ms() noexcept override { return coarse_clock_ms(); }
    // In a control group, our cache shares the limit with the other memory of the process and with its children. The
    // kernel kills processes that exceed the limit.
    bool short_of_memory(size_t nbytes) noexcept override {
        constexpr uint64_t kMargin = uint64_t{64} << 20;
        uint64_t left = memory_left_to_process();
        spare = left - std::min(left, kMargin);
        if (left >= nbytes + kMargin) return false;
        was_short.store(true, std::memory_order_relaxed);
        return true;
    }
    uint64_t calm_ms() noexcept override {
        constexpr uint64_t kFastestPerMs = uint64_t{8} << 20;  // the rate at which pages can be filled
        return spare / kFastestPerMs;
    }
    /// Whether `nbytes` fit below the limit of the control group, if there is one, with a margin for memory that other
    /// code takes.
    bool fits(size_t nbytes) const noexcept {
        constexpr uint64_t kOthers = uint64_t{4} << 20;
        return !limited || memory_before_group_limit() >= nbytes + kOthers;
    }

    const bool limited = group_memory_limit("") < kNoLimit;
    // Whether there has been a shortage of memory since small blocks last released their unused memory.
    std::atomic<bool> was_short{false};

  private:
    // Version 1 of control groups reports a huge number if there is no limit.
    static constexpr uint64_t kNoLimit = uint64_t{1} << 62;
    // Bytes beyond the margin at the time of the last check.
    uint64_t spare = 0;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// The source of blocks: RUSHLIGHT_CPU_ALLOCATOR=caching|malloc. Memory checkers detect the bounds and the owner of a
/// block only if malloc allocated it, so malloc is the default in a build with a sanitizer.
struct HostAllocator {
    HostDriver driver;
    CachingAllocator large{driver, {.rounding = kSmallGrain, .limit = memory_available_to_process()}};
    bool use_malloc = kSanitized;
    std::atomic<uint64_t> malloc_bytes{0}, malloc_peak{0}, malloc_count{0}, malloc_releases{0};

    HostAllocator() {
        if (const char* choice = std::getenv("RUSHLIGHT_CPU_ALLOCATOR"); choice && *choice) {
            use_malloc = std::strcmp(choice, "malloc") == 0;
            RL_CHECK(use_malloc || std::strcmp(choice, "caching") == 0, throw_value,
                     "RUSHLIGHT_CPU_ALLOCATOR: got '%s', needs 'caching' or 'malloc'", choice);
        }
    }
};

void register_fork_handlers();

// Never destroyed, because the static destructors of other code may still release blocks.
HostAllocator& host() {
    alignas(HostAllocator) static char storage[sizeof(HostAllocator)];
    static HostAllocator* instance = [] {
        auto* made = new (storage) HostAllocator;
        if (!made->use_malloc) {
            register_fork_handlers();
            small_blocks::before_mapping = [](size_t nbytes) noexcept {
                host().large.make_room(nbytes);
                return host().driver.fits(nbytes);
            };
        }
        return made;
    }();
    return *instance;
}

void register_fork_handlers() {
    pthread_atfork(
        [] {
            // The locks are taken in the same order as in `before_mapping`, to avoid a deadlock.
            small_blocks::before_fork();
            host().large.before_fork();
        },
        [] {
            host().large.after_fork_in_parent();
            small_blocks::after_fork_in_parent();
        },
        [] {
            host().large.after_fork_in_child();
            small_blocks::after_fork_in_child();
        });
}

void* allocate_malloc(HostAllocator& h, size_t nbytes) {
    void* data = nullptr;
    if (posix_memalign(&data, kSmallGrain, nbytes) != 0) return nullptr;
    ++h.malloc_count;
    uint64_t now = h.malloc_bytes += nbytes, peak = h.malloc_peak;
    while (peak < now && !h.malloc_peak.compare_exchange_weak(peak, now)) {}
    return data;
}

void* allocate_cached(HostAllocator& h, size_t nbytes) {
    if (nbytes > kSmallLimit) return h.large.allocate(nbytes);
    uint64_t now = coarse_clock_ms();
    void* data = small_blocks::allocate(nbytes, now);
    small_blocks::tick(now);
    h.large.tick(now);
    return data;
}

[[noreturn, gnu::cold]] void out_of_memory(size_t nbytes) {
    constexpr double kMiB = 1 << 20;
    MemoryStatistics s = memory_statistics();
    std::string left;
    if (host().driver.limited) {
        char text[64];
        std::snprintf(text, sizeof text, ", %.1f MiB are left in the control group",
                      static_cast<double>(memory_before_group_limit()) / kMiB);
        left = text;
    }
    if (AddressSpace space = address_space(); space.limit < UINT64_MAX) {
        char text[96];
        std::snprintf(text, sizeof text, ", RLIMIT_AS is %.1f MiB, of which %.1f MiB are used",
                      static_cast<double>(space.limit) / kMiB, static_cast<double>(space.used) / kMiB);
        left += text;
    }
    throw_out_of_memory(
        "cpu: out of memory: a block of %.1f MiB does not fit: %.1f MiB are in use, %.1f MiB are cached, "
        "the limit is %.1f MiB%s%s\n"
        "hint: drop tensors that are no longer needed, or use smaller batches",
        static_cast<double>(nbytes) / kMiB, static_cast<double>(s.allocated_bytes) / kMiB,
        static_cast<double>(s.reserved_bytes - s.allocated_bytes) / kMiB,
        static_cast<double>(s.limit_bytes) / kMiB, left.c_str(), host().large.largest_live(5).c_str());
}

}  // namespace

void* allocate_slow(size_t nbytes) {
    if (nbytes == 0) return nullptr;
    HostAllocator& h = host();
    void* data = h.use_malloc ? allocate_malloc(h, nbytes) : allocate_cached(h, nbytes);
    if (h.driver.was_short.load(std::memory_order_relaxed) && h.driver.was_short.exchange(false))
        small_blocks::give_back_unused();
    if (__builtin_expect(!data && !h.use_malloc, 0)) {
        // The cache that failed has already released its own unused memory. The other cache may hold the missing memory.
        empty_cache();
        data = allocate_cached(h, nbytes);
    }
    if (__builtin_expect(!data, 0)) out_of_memory(nbytes);
    if (nbytes >= detail::kSiteBytes && !h.use_malloc)
        h.large.set_site(data, current_site());  // for `out_of_memory`
    return data;
}

void release_slow(void* data, size_t nbytes) noexcept {
    if (!data) return;
    HostAllocator& h = host();
    if (h.use_malloc) {
        ++h.malloc_releases;
        h.malloc_bytes -= nbytes;
        std::free(data);
    } else if (nbytes <= kSmallLimit) {
        small_blocks::release(data, nbytes);
    } else if (h.large.release(data)) {
        small_blocks::look_soon();
    } else {
        // The program is aborted, because otherwise two owners could get the same memory.
        std::fprintf(stderr, "rushlight: cpu_release(%p, %zu): this block is not allocated\n", data, nbytes);
        std::abort();
    }
}

std::atomic<const AllocatorInterface*> custom_allocator{nullptr};

Allocation allocate_custom(const AllocatorInterface& allocator, size_t nbytes) {
    Allocation result{nullptr, allocator.release, allocator.self};
    if (nbytes == 0) return {nullptr, nullptr, nullptr};
    result.data = allocator.allocate(allocator.self, nbytes);
    RL_CHECK(result.data, throw_out_of_memory,
             "cpu: the allocator set by set_allocator() could not allocate %zu bytes", nbytes);
    if (reinterpret_cast<uintptr_t>(result.data) % kSmallGrain != 0) {
        allocator.release(allocator.self, result.data, nbytes);
        throw_runtime("cpu: the allocator set by set_allocator() returned %p, which is not a multiple of %zu",
                      result.data, kSmallGrain);
    }
    return result;
}

}  // namespace detail

const AllocatorInterface* set_allocator(const AllocatorInterface* allocator) {
    constexpr size_t kSize = sizeof(AllocatorInterface);
    if (allocator) {
        RL_CHECK(allocator->struct_size >= kSize, throw_value,
                 "set_allocator(allocator): got a struct of %u bytes, needs %zu", allocator->struct_size,
                 kSize);
        RL_CHECK(allocator->allocate && allocator->release, throw_value,
                 "set_allocator(allocator): a function is missing, needs allocate and release");
    }
    return detail::custom_allocator.exchange(allocator, std::memory_order_acq_rel);
}

MemoryStatistics memory_statistics() {
    detail::HostAllocator& h = detail::host();
    MemoryStatistics s = h.large.statistics();
    if (h.use_malloc) {
        s.allocated_bytes = s.active_bytes = s.reserved_bytes = h.malloc_bytes;
        s.allocated_bytes_peak = s.active_bytes_peak = s.reserved_bytes_peak = h.malloc_peak;
        s.allocation_count = h.malloc_count;
        s.release_count = h.malloc_releases;
        return s;
    }
    detail::small_blocks::Usage small = detail::small_blocks::usage();
    s.allocated_bytes += small.allocated_bytes;
    s.active_bytes += small.allocated_bytes;
    s.reserved_bytes += small.reserved_bytes;
    // Small blocks are not tracked individually. Their contribution to a peak is the number of bytes that they use now.
    s.allocated_bytes_peak += small.allocated_bytes;
    s.active_bytes_peak += small.allocated_bytes;
    s.reserved_bytes_peak += small.reserved_bytes;
    s.allocation_count += small.refill_count;
    s.release_count += small.flush_count;
    s.map_count += small.map_count;
    s.unmap_count += small.unmap_count;
    return s;
}

void reset_peak_memory_statistics() {
    detail::HostAllocator& h = detail::host();
    h.large.reset_peaks();
    h.malloc_peak = h.malloc_bytes.load();
}

std::string memory_snapshot() { return detail::host().large.snapshot(); }

void empty_cache() {
    if (detail::host().use_malloc) return;
    detail::small_blocks::empty_cache();
    detail::host().large.empty_cache();
}

uint64_t set_memory_limit(uint64_t nbytes) {
    return detail::host().large.set_limit(nbytes ? nbytes : detail::memory_available_to_process());
}

}  // namespace rushlight
