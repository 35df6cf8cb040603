// Blocks of memory that randomised tests of allocators fill with stamps, and a check that no two of them overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "check.h"

/// Returns the number of operations of a randomised test: RUSHLIGHT_FUZZ_OPERATIONS, or `usual`.
inline int fuzz_operations(int usual) {
    const char* given = std::getenv("RUSHLIGHT_FUZZ_OPERATIONS");
    return given ? std::atoi(given) : usual;
}

/// A block with a stamp. The stamp is written to the first word, the last word, and up to 64 words between them. These are
/// at least as dense as the smallest blocks of an allocator, 512 bytes, unless the block has more than 32 KiB.
struct StampedBlock {
    uint64_t* data = nullptr;
    size_t words = 0;
    uint64_t stamp = 0;

    void write() const {
        for (size_t i = 0; i < words; i += step()) data[i] = stamp;
        data[words - 1] = stamp;
    }
    void check() const {
        bool intact = data[words - 1] == stamp;
        for (size_t i = 0; i < words; i += step()) intact = intact && data[i] == stamp;
        CHECK(intact);
    }

  private:
    size_t step() const { return std::max<size_t>(64, words / 64); }
};

/// The blocks that the host owns. They never overlap, whatever streams use them.
class OwnedRanges {
  public:
    void add(const void* data, size_t nbytes) {
        const auto begin = reinterpret_cast<uintptr_t>(data);
        const auto next = ends_.lower_bound(begin);
        CHECK(next == ends_.end() || begin + nbytes <= next->first);
        CHECK(next == ends_.begin() || std::prev(next)->second <= begin);
        ends_[begin] = begin + nbytes;
    }
    void remove(const void* data) { CHECK(ends_.erase(reinterpret_cast<uintptr_t>(data)) == 1); }

  private:
    std::map<uintptr_t, uintptr_t> ends_;  // by the beginning of each block
};
