// An allocator for tests that counts blocks, and places each block directly before an inaccessible page.
//
// A read or write beyond the end of a block (rounded up to the alignment) ends the process at the faulty instruction.
// The release of a block detects writes before the block's beginning, writes between its end and the rounded end, a
// second release, and a wrong size. Compile this file against core's headers: c++ -std=c++20 -shared -fPIC
// -I<core>/include guard_allocator.cpp
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rushlight/allocator.h"

namespace {

constexpr size_t kPage = 4096, kAlignment = 64;
constexpr unsigned char kCanary = 0xA5;

// The byte that new blocks are filled with; results must not depend on it.
std::atomic<unsigned char> fresh = 0xCB;

std::atomic<size_t> live_bytes, live_blocks, total_blocks;

// The number of requests until one is refused; negative if none is refused.
std::atomic<int64_t> until_refusal = -1;

struct Layout {
    size_t rounded, mapped,
        before;  // bytes of the block, bytes of the mapping with its guard, offset of the block

    explicit Layout(size_t nbytes)
        : rounded((nbytes + kAlignment - 1) / kAlignment * kAlignment),
          mapped((rounded + kAlignment + kPage - 1) / kPage * kPage + kPage),
          before(mapped - kPage - rounded) {}
};

[[noreturn]] void die(const char* what, const void* data, size_t nbytes) {
    std::fprintf(stderr, "guard allocator: %s: block %p of %zu bytes\n", what, data, nbytes);
    std::abort();
}

void* allocate(void*, size_t nbytes) {
    if (nbytes > size_t{4} << 30) return nullptr;  // tests request this to be refused
    if (until_refusal.load() >= 0 && until_refusal-- == 0) return nullptr;
    Layout layout(nbytes);
    void* mapping = mmap(nullptr, layout.mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    auto* bytes = static_cast<unsigned char*>(mapping);
    if (mprotect(bytes + layout.mapped - kPage, kPage, PROT_NONE) != 0) {
        munmap(mapping, layout.mapped);
        return nullptr;
    }
    unsigned char* block = bytes + layout.before;
    std::memset(block - kAlignment, kCanary, kAlignment);
    std::memset(block, fresh, nbytes);
    std::memset(block + nbytes, kCanary, layout.rounded - nbytes);
    live_bytes += nbytes;
    ++live_blocks;
    ++total_blocks;
    return block;
}

void release(void*, void* data, size_t nbytes) {
    if (!data) return;
    Layout layout(nbytes);
    auto* block = static_cast<unsigned char*>(data);
    for (size_t i = 1; i <= kAlignment; ++i)
        if (block[-static_cast<ptrdiff_t>(i)] != kCanary) die("written before its beginning", data, nbytes);
    for (size_t i = nbytes; i < layout.rounded; ++i)
        if (block[i] != kCanary) die("written beyond its end, or released with another size", data, nbytes);
    live_bytes -= nbytes;
    --live_blocks;
    munmap(block - layout.before, layout.mapped);
}

const rushlight::AllocatorInterface interface_{sizeof(rushlight::AllocatorInterface), nullptr, allocate,
                                               release};

}  // namespace

extern "C" {
RL_API const void* guard_allocator() { return &interface_; }
RL_API void guard_fill_fresh_with(unsigned char value) { fresh = value; }
RL_API void guard_refuse_after(int64_t requests) { until_refusal = requests; }
RL_API size_t guard_live_bytes() { return live_bytes; }
RL_API size_t guard_live_blocks() { return live_blocks; }
RL_API size_t guard_total_blocks() { return total_blocks; }
}
