// The file of memory that the ranks of a group map.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace rushlight {

// Note [Collectives]
// Every rank has two buffers in the file, and a count of the steps that it has finished writing. In step s a rank writes its
// part to buffer s % 2, publishes s + 1, waits until every rank has published as much, and reads what it needs from the
// buffers of the others. All collectives are made of such steps, a chunk of the tensors in each. No rank writes to a buffer
// that is still read: a rank writes in step s after all ranks have published s, which they did after they had read what
// step s - 2 left in the same buffer. So one wait for each chunk is enough.
//
// The first step of a collective also carries its description in words. All ranks compare all descriptions with rank 0's
// before they write to a tensor, and raise the same error where one differs. As each has made one step, the group stays
// usable.
//
// A rank that waits sleeps in short turns, and checks between them whether the ranks that it waits for still run: each
// rank publishes its process's number and start time, which distinguish it from a later process with the same number.
// This needs no file descriptor, and a forked child is not mistaken for its parent.
//
// Note [Messages]
// Messages from one rank to another are a stream of bytes: for each message a header and its elements. The stream goes through
// a ring in the file, one for each pair and direction, of which the sender alone counts what was written, and the receiver
// what was read. A thread of each rank moves bytes in both directions while messages are under way, as far as rings have room,
// so that two ranks which send to one another both go on. It sleeps on its rank's `mail`, which the others count up after they
// have moved something. A message that is read before a receive with its tag is there is kept in memory of the receiver.

constexpr int kMaxRanks = 256;
constexpr int64_t kChunk = 256 << 10;  // bytes of a buffer: two ranks' buffers stay in the cache of a core
constexpr int kTextBytes = 512;
constexpr int64_t kRing = 128 << 10;  // bytes; pages that no message has used take no memory

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
    std::atomic<uint64_t> written;  // bytes, since the group was made
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

// When a process was started, in ticks since the machine was started; 0 if the process has ended.
uint64_t start_of_process(int process);

void copy_text(char* to, size_t room, const std::string& text);
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, int64_t nanoseconds);
void futex_wake(std::atomic<uint32_t>& word);

}  // namespace rushlight
