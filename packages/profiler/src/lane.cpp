#include "lane.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "recorder.h"

namespace rushlight::profiler {
namespace {

constexpr size_t kMaxDepth = 4096;

// Returns the average number of words for the details of a record, rounded to a power of two. A stack has at most 64
// words, the arguments of a call with two small matrices have 9 words, and the text of an annotation has 1 word.
uint64_t words_for_record(uint64_t session) { return session & kStacks ? 64 : session & kShapes ? 16 : 1; }

constinit thread_local Lane* lane = nullptr;

// Its destructor marks the lane as retired when the thread ends. It is separate from `lane`, so that `lane` has no
// destructor and is read without a guard for initialization.
struct Owner {
    ~Owner() {
        Lane* mine = std::exchange(lane, nullptr);
        if (!mine) return;
        std::lock_guard guard(registry().lock);
        mine->retired = true;
        if (mine->records().begin() != mine->records().published()) return;  // collect() deletes the lane
        std::erase(registry().lanes, mine);
        delete mine;
    }
    bool armed = false;
};
thread_local Owner owner;

}  // namespace

Registry& registry() {
    static auto* all = new Registry;
    return *all;
}

Lane::Lane(uint32_t number) : thread_id(syscall(SYS_gettid)), number_(number) {
    frames_.reserve(kMaxDepth);
    char name[32];
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0) thread_name = name;
}

void Lane::enter(uint64_t session, uint64_t record_count, uint64_t word_count) {
    if (!records_ || records_->capacity() != record_count)
        records_ = std::make_unique<Ring<Record>>(record_count);
    if (!words_ || words_->capacity() != word_count) words_ = std::make_unique<Ring<uint64_t>>(word_count);
    frames_.clear();
    session_ = session;
}

uint32_t Lane::open(Kind kind, const char* name, uint64_t sequence, Details details) {
    if (frames_.size() == kMaxDepth) [[unlikely]] {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return 0;
    }
    if (++last_id_ == 0) ++last_id_;
    frames_.push_back({0, name, sequence, details, last_id_, kind});
    frames_.back().begin = ticks();  // read last, so that the span does not include the recording itself
    return last_id_;
}

void Lane::close(uint32_t id, int64_t nbytes) {
    uint64_t end = ticks();
    for (size_t i = frames_.size(); i-- > 0;)
        if (frames_[i].id == id) return finish(i, end, nbytes);
}

void Lane::close_node(uint64_t sequence) {
    uint64_t end = ticks();
    for (size_t i = frames_.size(); i-- > 0;)
        if (frames_[i].kind == Kind::Node && frames_[i].sequence == sequence) return finish(i, end, 0);
}

void Lane::finish(size_t at, uint64_t end, int64_t nbytes) {
    const Frame& f = frames_[at];
    uint32_t parent = at ? frames_[at - 1].id : 0;
    if (current_session() == session_)  // spans of an earlier session are not recorded
        push({f.begin,
              end,
              f.name,
              f.sequence,
              nbytes,
              f.details.position,
              f.id,
              parent,
              f.details.argument_words,
              f.details.stack_words,
              f.kind,
              {}});
    frames_.resize(at);
}

void Lane::add_memory(const void* data, int64_t nbytes, Device device) {
    uint64_t now = ticks();
    push({now, now, nullptr, reinterpret_cast<uint64_t>(data), nbytes, 0, 0,
          frames_.empty() ? 0 : frames_.back().id, 0, 0, Kind::Memory, device});
}

void Lane::note_node(uint64_t sequence) {
    if (!frames_.empty() && frames_.back().kind == Kind::Operator) frames_.back().sequence = sequence;
}

void Lane::push(const Record& record) {
    if (records_->room() == 0) [[unlikely]] {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    uint64_t at = records_->end();
    (*records_)[at] = record;
    records_->publish(at + 1);
}

const char* Lane::intern(std::string_view name) {
    if (auto known = names_.find(name); known != names_.end()) return known->second;
    std::lock_guard guard(registry().lock);
    const std::string& kept = registry().names.try_emplace(std::string(name)).first->first;
    names_.emplace(kept, kept.c_str());
    return kept.c_str();
}

Lane* this_lane() { return lane; }

Lane* lane_for(uint64_t session) noexcept {
    if (lane && lane->session() == session) [[likely]]
        return lane;
    try {
        uint64_t records = std::bit_ceil(detail::capacity.load(std::memory_order_relaxed));
        uint64_t words = records * words_for_record(session);
        std::lock_guard guard(registry().lock);
        if (!lane) {
            auto fresh = std::make_unique<Lane>(registry().last_number + 1);
            fresh->enter(session, records, words);
            registry().lanes.push_back(fresh.get());
            ++registry().last_number;
            lane = fresh.release();
            owner.armed = true;  // the first use creates it, so that its destructor runs when the thread ends
        } else {
            lane->enter(session, records, words);
        }
        return lane;
    } catch (const std::bad_alloc&) { return nullptr; }
}

void forget_lanes() {
    registry().lanes.clear();  // not freed, because this would write to pages that are shared with the parent
    lane = nullptr;
}

}  // namespace rushlight::profiler
