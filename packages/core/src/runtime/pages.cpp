#include "pages.h"

#include <sys/mman.h>
#include <time.h>

namespace rushlight::detail {

void* map_pages(size_t nbytes, bool huge) noexcept {
    size_t padded = nbytes + kHugePage;
    if (padded < nbytes) return nullptr;
    void* raw = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    auto start = reinterpret_cast<uintptr_t>(raw);
    uintptr_t aligned = (start + kHugePage - 1) & ~(kHugePage - 1);
    if (aligned != start) munmap(raw, aligned - start);
    if (size_t tail = start + padded - (aligned + nbytes))
        munmap(reinterpret_cast<void*>(aligned + nbytes), tail);
    void* data = reinterpret_cast<void*>(aligned);
    // This call is only advice: a kernel without huge pages provides small pages.
    if (huge) madvise(data, nbytes, MADV_HUGEPAGE);
    return data;
}

void unmap_pages(void* data, size_t nbytes) noexcept { munmap(data, nbytes); }

void discard_pages(void* data, size_t nbytes) noexcept { madvise(data, nbytes, MADV_DONTNEED); }

uint64_t (*coarse_clock_ms)() noexcept = []() noexcept -> uint64_t {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
};

}  // namespace rushlight::detail
