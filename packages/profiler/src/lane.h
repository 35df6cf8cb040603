// Lanes: each lane holds the records of one thread, and the thread writes to it without waiting for other threads.
// See Note [Lanes].
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "ring.h"
#include "rushlight/device.h"

namespace rushlight::profiler {

// Note [Lanes]
// A thread that records an event gets a lane, to which only this thread writes. A span is a frame on the lane's stack while
// it is open, and becomes a record when it ends. Each recording is a session with a number. If a lane was last used
// in another session, its thread empties it before using it again. So starting a session takes one store, and so does
// stopping it. A thread that is inside of an operator when a session stops may write one late record. This record is
// recognised by its time and discarded.

enum class Kind : uint8_t { Operator, Node, Annotation, Memory };

/// One event. It is written when the event ends.
struct Record {
    uint64_t begin, end;  // ticks
    const char* name;  // valid until the process ends; null for memory
    uint64_t sequence;  // number of the graph's node; for memory, the address
    int64_t
        nbytes;  // the size of the first result; for memory, the size of the block, negative for a release
    uint64_t details;  // position of the arguments and the stack in the lane's words
    uint32_t id, parent;  // numbers within the lane, counted from 1; 0 for none
    uint16_t argument_words, stack_words;
    Kind kind;
    Device device;
};
static_assert(sizeof(Record) == 64, "a Record must have the size of a cache line");

struct Details {
    uint64_t position = 0;
    uint16_t argument_words = 0, stack_words = 0;
};

struct Frame {
    uint64_t begin;
    const char* name;
    uint64_t sequence;
    Details details;
    uint32_t id;
    Kind kind;
};

class Lane {
  public:
    explicit Lane(uint32_t number);

    // --- by the lane's thread ---
    /// Opens a span and returns its number, or 0 if the stack of frames is full.
    uint32_t open(Kind kind, const char* name, uint64_t sequence, Details details);
    /// Ends the span and records it. Spans inside it that are still open end without being recorded. Does nothing if
    /// the span is not open.
    void close(uint32_t id, int64_t nbytes);
    void close_node(uint64_t sequence);
    void add_memory(const void* data, int64_t nbytes, Device device);
    /// Sets the node that the innermost operator has recorded. If it is called several times for an operator, the last
    /// node counts, because it is the node of the operator's result.
    void note_node(uint64_t sequence);
    const char* intern(std::string_view name);

    /// Prepares the lane for a session, under the registry's lock. The lane object is reused, because spans that
    /// began in another session may still be open on the thread's call stack and will be closed later.
    void enter(uint64_t session, uint64_t record_count, uint64_t word_count);

    // --- with the registry's lock held ---
    uint64_t session() const { return session_; }
    uint32_t number() const { return number_; }

    Ring<Record>& records() { return *records_; }
    Ring<uint64_t>& words() { return *words_; }
    int64_t thread_id;
    std::string thread_name;
    std::atomic<uint64_t> dropped{0};
    std::atomic<uint64_t> bare{0};  // number of records for whose details there was no room
    bool retired = false;  // whether its thread has ended

  private:
    void push(const Record& record);
    void finish(size_t frame, uint64_t end, int64_t nbytes);

    std::unique_ptr<Ring<Record>> records_;
    std::unique_ptr<Ring<uint64_t>> words_;
    std::vector<Frame> frames_;
    uint64_t session_ = 0;
    const uint32_t number_;
    uint32_t last_id_ = 0;
    std::unordered_map<std::string_view, const char*> names_;
};

/// All lanes, the names that records point to, and the lock of this module. It is never destroyed, because threads
/// may end after static objects are destroyed.
struct Registry {
    std::mutex lock;
    std::vector<Lane*> lanes;
    uint32_t last_number = 0;
    std::unordered_map<std::string, char> names;  // the addresses of the keys do not change
};
Registry& registry();

/// Returns the calling thread's lane for the session, or null if there is no memory for it.
Lane* lane_for(uint64_t session) noexcept;
/// Returns the calling thread's lane in any session, or null if it has none.
Lane* this_lane();
/// Discards all lanes. Called in a forked child.
void forget_lanes();

}  // namespace rushlight::profiler
