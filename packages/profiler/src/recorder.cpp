#include "recorder.h"

#include <pthread.h>

#include <algorithm>

#include "arguments.h"
#include "rushlight/allocator.h"
#include "rushlight/hooks.h"
#include "rushlight/value.h"
#include "stacks.h"

namespace rushlight::profiler {

constinit std::atomic<uint64_t> detail::session{0};
constinit std::atomic<uint64_t> detail::capacity{0};

namespace {

constexpr StageMask kBit = bit(Stage::Profiler);

uint64_t last_number = 0;
Moment begin_moment, end_moment;
uint64_t begin_time, begin_allocated;

// A span that ends with its scope, even if an exception is thrown.
class Span {
  public:
    Span(Lane& lane, Kind kind, const char* name, Details details)
        : lane_(lane), id_(lane.open(kind, name, 0, details)) {}
    ~Span() { lane_.close(id_, nbytes); }
    Span(const Span&) = delete;
    int64_t nbytes = 0;

  private:
    Lane& lane_;
    uint32_t id_;
};

int64_t size_of_first(const Stack& results) {
    if (results.empty()) return 0;
    const Tensor* t = results[0].as<Tensor>();
    return t ? t->numel() * static_cast<int64_t>(itemsize(t->dtype())) : 0;
}

Details details_of(Lane& lane, const Stack& arguments) {
    Details details;
    details.position = lane.words().end();
    if (lane.session() & kShapes) {
        details.argument_words = write_arguments(lane.words(), arguments);
        if (!details.argument_words) lane.bare.fetch_add(1, std::memory_order_relaxed);
    }
    if (lane.session() & kStacks) details.stack_words = write_stack(lane.words());
    return details;
}

void record_operator(const Operator& op, StageMask rest, Stack& stack) {
    Lane* lane = recording_lane();
    if (!lane) {
        // The session has ended, on another thread or before this line.
        if (!current_session()) dispatch_state.on &= ~kBit;
        op.boxed(op, rest, stack);
        return;
    }
    Span span(*lane, Kind::Operator, op.name, details_of(*lane, stack));
    op.boxed(op, rest, stack);
    span.nbytes = size_of_first(stack);
}

void node_made(uint64_t sequence) {
    if (Lane* lane = recording_lane()) lane->note_node(sequence);
}
void node_begin(const char* name, uint64_t sequence) {
    if (Lane* lane = recording_lane()) lane->open(Kind::Node, lane->intern(name), sequence, {});
}
void node_end(uint64_t sequence) {
    if (Lane* lane = recording_lane()) lane->close_node(sequence);
}
void allocated(const void* data, size_t nbytes, Device device) {
    if (Lane* lane = recording_lane()) lane->add_memory(data, static_cast<int64_t>(nbytes), device);
}
void released(const void* data, size_t nbytes, Device device) {
    if (Lane* lane = recording_lane()) lane->add_memory(data, -static_cast<int64_t>(nbytes), device);
}

const Observer without_memory{node_made, node_begin, node_end, nullptr, nullptr};
const Observer with_memory{node_made, node_begin, node_end, allocated, released};

// Deletes the lanes of threads that have ended. The caller holds the registry's lock.
void drop_retired() {
    std::erase_if(registry().lanes, [](Lane* lane) {
        bool retired = lane->retired;
        if (retired) delete lane;
        return retired;
    });
}

// In a forked child, recording is off, because its records could not be read.
void lock_before_fork() { registry().lock.lock(); }
void unlock_after_fork() { registry().lock.unlock(); }
void forget_in_child() {
    detail::session = 0;
    set_observer(nullptr);
    dispatch_state.on &= ~kBit;
    forget_lanes();
    registry().lock.unlock();
}

void prepare_process() {
    install_fallback(Stage::Profiler, record_operator);
    pthread_atfork(lock_before_fork, unlock_after_fork, forget_in_child);
}

}  // namespace

bool start(uint64_t wanted, uint64_t capacity) {
    static std::once_flag once;
    std::call_once(once, prepare_process);
    if (current_session()) return false;
    forget_stacks();  // called without the lock, because it releases Python objects
    {
        std::lock_guard guard(registry().lock);
        if (current_session()) return false;
        drop_retired();
        for (Lane* lane : registry().lanes) {
            lane->records().consume(lane->records().published());
            lane->words().consume(lane->words().published());
            lane->dropped = 0;
            lane->bare = 0;
        }
        detail::capacity = capacity;
        begin_time = nanoseconds(CLOCK_REALTIME);
        begin_allocated = memory_statistics().allocated_bytes;
        begin_moment = measure_moment();
        detail::session.store(++last_number << kNumberShift | wanted, std::memory_order_release);
    }
    set_observer(wanted & kMemory ? &with_memory : &without_memory);
    join();
    return true;
}

bool stop() {
    std::lock_guard guard(registry().lock);
    if (!current_session()) return false;
    detail::session.store(0, std::memory_order_release);
    end_moment = measure_moment();
    set_observer(nullptr);
    dispatch_state.on &= ~kBit;  // other threads clear their stage bit at their next operator
    return true;
}

Lane* join() noexcept {
    Lane* lane = recording_lane();
    if (lane) dispatch_state.on |= kBit;
    return lane;
}

namespace {

// Returns a copy of the lane's records. The caller holds the registry's lock.
LaneRecords copy_of(Lane& lane, uint64_t records_end, uint64_t words_end) {
    auto& records = lane.records();
    auto& words = lane.words();
    LaneRecords out{lane.number(), lane.thread_id, lane.thread_name, {}, {}, words.begin()};
    for (uint64_t at = records.begin(); at != records_end; ++at)
        if (records[at].begin >= begin_moment.ticks) out.records.push_back(records[at]);
    for (uint64_t at = words.begin(); at != words_end; ++at) out.words.push_back(words[at]);
    return out;
}

}  // namespace

Recording copy_records() {
    std::lock_guard guard(registry().lock);
    Recording all{begin_moment.ticks, measure_moment().ticks, begin_time, begin_allocated, 0, 0, {}};
    const uint64_t session = current_session();
    if (!session) return all;
    for (Lane* lane : registry().lanes) {
        if (lane->session() != session) continue;  // its thread has recorded nothing in this session
        // The records are read first: the details of a record are published before the record.
        const uint64_t records_end = lane->records().published();
        all.dropped += lane->dropped.load();
        all.bare += lane->bare.load();
        LaneRecords out = copy_of(*lane, records_end, lane->words().published());
        if (!out.records.empty()) all.lanes.push_back(std::move(out));
    }
    return all;
}

Recording collect(bool release) {
    Recording all{begin_moment.ticks, end_moment.ticks, begin_time, begin_allocated, 0, 0, {}};
    std::lock_guard guard(registry().lock);
    if (current_session()) return all;
    for (Lane* lane : registry().lanes) {
        auto& records = lane->records();
        auto& words = lane->words();
        uint64_t words_end = words.published(), records_end = records.published();
        LaneRecords out = copy_of(*lane, records_end, words_end);
        records.consume(records_end);
        words.consume(words_end);
        if (release) {
            records.release_pages();
            words.release_pages();
        }
        all.dropped += lane->dropped.exchange(0);
        all.bare += lane->bare.exchange(0);
        if (!out.records.empty()) all.lanes.push_back(std::move(out));
    }
    drop_retired();
    return all;
}

}  // namespace rushlight::profiler
