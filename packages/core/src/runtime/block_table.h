// The data structures of the caching allocator: blocks, bins of free blocks, and the table of allocated blocks by
// address. They are stored apart from the memory that they describe, because the host may be unable to read that
// memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rushlight::detail {

struct Segment;

// Pending: the block was released, but other streams may still use it.
enum class BlockState : uint8_t { Free, Live, Pending };

struct Block {
    char* data;
    size_t size;
    Segment* segment;
    Block *left, *right;  // neighbours in the segment
    Block *previous, *next;  // neighbours in the bin, while the block is free
    std::vector<uint64_t> used_on;  // streams other than the block's own
    uint32_t pending_events;
    uint32_t site;  // where a large block was allocated; 0 for small blocks
    BlockState state;
};

// Fresh: not used since the driver mapped the page. Leaving: about to be discarded.
enum class PageState : uint8_t { Fresh, Resident, Leaving, Discarded };

/// The smallest amount of memory that the driver releases.
inline constexpr size_t kPageSize = size_t{2} << 20;

/// The state of a page of a segment.
struct Page {
    uint64_t taken_ms;  // time at which a block in the page was last allocated
    uint64_t released_ms;  // time at which a block in the page was last released
    uint32_t live_count;  // number of blocks in the page that are not free
    PageState state;
};

/// A range of memory that the driver mapped in one call.
struct Segment {
    char* data;
    size_t size;
    struct FreeBins* bins;
    uint64_t stream;
    bool small;
    // Whether the segment was inherited by a fork or belonged to a destroyed graph. Its blocks are never allocated
    // again.
    bool retired;
    uint64_t pool;  // 0: the common memory
    Block* first;
    Segment *previous, *next;
    std::unique_ptr<Page[]> pages;
};

/// Free blocks by size: sixteen bins for each power of two, and a bitmap of the bins that are not empty.
struct FreeBins {
    static constexpr int kSteps = 4, kOrders = 48, kBins = kOrders << kSteps;

    static int index(size_t size) {
        int order = std::bit_width(size) - 1;
        int step = static_cast<int>(size >> (order >= kSteps ? order - kSteps : 0)) & ((1 << kSteps) - 1);
        int i = (order << kSteps) | step;
        return i < kBins ? i : kBins - 1;
    }

    void insert(Block* block) {
        int i = index(block->size);
        block->previous = nullptr;
        block->next = bins[i];
        if (block->next) block->next->previous = block;
        bins[i] = block;
        occupied[i / 64] |= uint64_t{1} << (i % 64);
    }

    void remove(Block* block) {
        int i = index(block->size);
        (block->previous ? block->previous->next : bins[i]) = block->next;
        if (block->next) block->next->previous = block->previous;
        if (!bins[i]) occupied[i / 64] &= ~(uint64_t{1} << (i % 64));
    }

    /// Returns the smallest block of at least the requested size in the bin of this size. If there is none, searches
    /// the following bins.
    Block* find(size_t size) const {
        for (int i = index(size); i < kBins; ++i) {
            uint64_t word = occupied[i / 64] >> (i % 64);
            if (!word) {
                i |= 63;
                continue;
            }
            i += std::countr_zero(word);
            Block* best = nullptr;
            for (Block* block = bins[i]; block; block = block->next) {
                if (block->size == size) return block;
                if (block->size > size && (!best || block->size < best->size)) best = block;
            }
            if (best) return best;
        }
        return nullptr;
    }

    /// Calls `visit` with every block in the bins for blocks of at least `size`. `visit` may remove the block.
    template <class F>
    void for_each_from(size_t size, F&& visit) {
        for (int i = index(size); i < kBins; ++i) {
            if (!(occupied[i / 64] >> (i % 64))) {
                i |= 63;
                continue;
            }
            for (Block* block = bins[i]; block;) {
                Block* following = block->next;
                visit(block);
                block = following;
            }
        }
    }

    void clear() {
        bins.fill(nullptr);
        occupied.fill(0);
    }

    std::array<Block*, kBins> bins = {};
    std::array<uint64_t, kBins / 64> occupied = {};
};

/// Live blocks by address: a hash table with open addressing and linear probing, at most half full.
class BlockTable {
  public:
    BlockTable() : slots_(64) {}

    /// Makes room for one more entry, so that `insert` cannot fail.
    void reserve() {
        if ((size_ + 1) * 2 <= slots_.size()) return;
        std::vector<Block*> old(slots_.size() * 2);
        old.swap(slots_);
        --shift_;
        for (Block* block : old) {
            if (block) position(block);
        }
    }
    void insert(Block* block) {
        position(block);
        ++size_;
    }
    Block* find(const void* data) const {
        for (size_t i = home(data); slots_[i]; i = next(i)) {
            if (slots_[i]->data == data) return slots_[i];
        }
        return nullptr;
    }
    Block* take(const void* data) {
        size_t i = home(data);
        while (slots_[i] && slots_[i]->data != data) i = next(i);
        Block* found = slots_[i];
        if (!found) return nullptr;
        // Fill the gap: move a later entry to it, unless the entry would then precede the slot of its hash value.
        for (size_t j = next(i); slots_[j]; j = next(j)) {
            size_t distance_home = (j - home(slots_[j]->data)) & (slots_.size() - 1);
            size_t distance_gap = (j - i) & (slots_.size() - 1);
            if (distance_home >= distance_gap) {
                slots_[i] = slots_[j];
                i = j;
            }
        }
        slots_[i] = nullptr;
        --size_;
        return found;
    }

  private:
    size_t home(const void* data) const {
        return (reinterpret_cast<uintptr_t>(data) >> 6) * 0x9E3779B97F4A7C15u >> shift_;
    }
    size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
    void position(Block* block) {
        size_t i = home(block->data);
        while (slots_[i]) i = next(i);
        slots_[i] = block;
    }

    std::vector<Block*> slots_;
    size_t size_ = 0;
    int shift_ = 58;  // 64 - log2(slots)
};

/// The Block objects, allocated in chunks and reused.
class BlockStore {
  public:
    /// Makes room for `n` more blocks, so that `take` cannot fail.
    void reserve(size_t n) {
        while (count_ < n) {
            chunks_.push_back(std::make_unique<Block[]>(64));
            for (size_t i = 0; i < 64; ++i) give(&chunks_.back()[i]);
        }
    }
    Block* take() {
        Block* block = unused_;
        unused_ = block->next;
        --count_;
        // The list of streams of a free block is empty. The list is not reset here, so that its memory is reused.
        block->left = block->right = block->previous = block->next = nullptr;
        block->pending_events = block->site = 0;
        block->state = BlockState::Free;
        return block;
    }
    void give(Block* block) {
        block->next = unused_;
        unused_ = block;
        ++count_;
    }

  private:
    std::vector<std::unique_ptr<Block[]>> chunks_;
    Block* unused_ = nullptr;
    size_t count_ = 0;
};

}  // namespace rushlight::detail
