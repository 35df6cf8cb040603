// The shared memory of a group: a file that all its ranks map.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace rushlight {

// Note [Collectives]
// Every rank has two buffers in the file, and a counter of the steps that it has finished writing. In step s a rank
// writes its data to buffer s % 2, sets its counter to s + 1, waits until the counter of every rank is at least s + 1,
// and then reads the data that it needs from the buffers of the others. All collectives consist of such steps, each of
// which transfers one chunk of the tensors. No rank writes to a buffer that another rank still reads: a rank writes in
// step s after every rank has set its counter to s, and each rank did that after it had read the data of step s - 2
// from the same buffer. So one wait for each chunk is enough.
//
// In the first step of a collective, each rank also writes a description of the collective as text. All ranks compare
// all descriptions with the description of rank 0 before they write to a tensor, and raise the same error if one
// differs. The group stays usable, because each rank has made exactly one step.
//
// A rank that waits sleeps for short intervals. Between them it checks whether the ranks that it waits for still run.
// For this, each rank publishes its process's id and start time, which together distinguish it from a later process
// with the same id. This needs no file descriptor, and a forked child is not mistaken for its parent.
//
// Note [Messages]
// The messages from one rank to another form a stream of bytes, which contains a header and the elements of each
// message. The stream passes through a ring buffer in the file. There is one ring for each pair of ranks and each
// direction. Only the sender updates the number of bytes written, and only the receiver the number of bytes read. While
// messages are under way, a thread of each rank transfers bytes in both directions as long as the rings have room, so
// two ranks that send to each other cannot block each other. The thread sleeps on its rank's `mail`, which other ranks
// increment after they have transferred bytes. If a message arrives before a receive with its
// tag is posted, it is stored in the receiver's own memory.

constexpr int kMaxRanks = 256;
// Bytes in a buffer; the buffers of two ranks fit in the cache of a core.
constexpr int64_t kChunk = 256 << 10;
constexpr int kTextBytes = 512;
constexpr int64_t kRing = 128 << 10;  // bytes in a ring; pages that no message has used take no memory

enum class RankState : uint32_t { Absent, Joined, Left };

struct alignas(128) RankSlot {
    std::atomic<uint32_t> step;  // futex
    std::atomic<uint32_t> sleepers;
    std::atomic<RankState> state;
    int32_t process;
    uint64_t started;
    std::atomic<uint32_t> mail;  // futex
    std::atomic<uint32_t> awaits_mail;
};

struct alignas(128) StepText {
    char what[kTextBytes / 2];
    char where[kTextBytes / 2];
};

struct alignas(128) Ring {
    // The total numbers of bytes that were written and read since the group was created.
    std::atomic<uint64_t> written;
    alignas(128) std::atomic<uint64_t> read;
    alignas(128) char bytes[kRing];
};

struct alignas(4096) CollectiveRegion {
    std::atomic<uint32_t> broken;  // 0: no, 1: the text is being written, 2: yes
    char why[2 * kTextBytes];
    RankSlot ranks[kMaxRanks];
    // Followed by two texts and two buffers for each rank, and a ring for each pair of ranks in each direction.

    StepText& text(int rank, uint32_t step) {
        return reinterpret_cast<StepText*>(this + 1)[2 * rank + static_cast<int>(step % 2)];
    }
    char* buffer(int size, int rank, uint32_t step) {
        return reinterpret_cast<char*>(this + 1) + static_cast<int64_t>(sizeof(StepText)) * 2 * size +
               kChunk * (2 * rank + static_cast<int>(step % 2));
    }
    Ring& ring(int size, int from, int to) {
        return reinterpret_cast<Ring*>(buffer(size, size, 0))[from * size + to];
    }
    static size_t bytes(int size) {
        const auto n = static_cast<size_t>(size);
        return sizeof(CollectiveRegion) + n * 2 * (sizeof(StepText) + static_cast<size_t>(kChunk)) +
               n * n * sizeof(Ring);
    }
};

// The time at which a process was started, in clock ticks since the machine was started; 0 if the process has ended.
uint64_t start_of_process(int process);

void copy_text(char* to, size_t room, const std::string& text);
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds);
void futex_wake(std::atomic<uint32_t>& word);

}  // namespace rushlight
