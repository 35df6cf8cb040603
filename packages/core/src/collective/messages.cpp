#include "collective/messages.h"

#include <algorithm>

#include "rushlight/dispatch.h"
#include "rushlight/ops/copy_.h"

namespace rushlight {
namespace {

constexpr int64_t kHeader = sizeof(MessageHeader);

// These functions copy bytes to a ring or from it, beginning at a position of the ring's stream.
void to_ring(Ring& ring, uint64_t at, const char* from, int64_t n) {
    const auto begin = static_cast<int64_t>(at % kRing);
    const int64_t first = std::min(n, kRing - begin);
    std::memcpy(ring.bytes + begin, from, static_cast<size_t>(first));
    std::memcpy(ring.bytes, from + first, static_cast<size_t>(n - first));
}
void from_ring(const Ring& ring, uint64_t at, char* to, int64_t n) {
    if (n == 0) return;
    const auto begin = static_cast<int64_t>(at % kRing);
    const int64_t first = std::min(n, kRing - begin);
    std::memcpy(to, ring.bytes + begin, static_cast<size_t>(first));
    std::memcpy(to + first, ring.bytes, static_cast<size_t>(n - first));
}

}  // namespace

ProcessGroup::Messages::Outgoing::Outgoing(Posted posted)
    : Posted(std::move(posted)), header{}, elements(work->what_.inputs) {
    const Tensor& t = work->what_.inputs[0];
    header.bytes = elements.bytes();
    header.elements = t.numel();
    header.dtype = static_cast<int32_t>(t.dtype());
    header.tag = tag;
    copy_text(header.where, sizeof(header.where), work->what_.where);
}

ProcessGroup::Messages::Messages(ProcessGroup& group)
    : group_(group),
      region_(*group.region_),
      rank_(group.rank_),
      size_(group.size_),
      outgoing_(static_cast<size_t>(size_)),
      incoming_(static_cast<size_t>(size_)),
      early_(static_cast<size_t>(size_)),
      thread_([this] { run(); }) {}

void ProcessGroup::Messages::post(Work work, int peer, int tag, bool sends) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(static_cast<int64_t>(group_.timeout_ * 1e3));
    {
        std::lock_guard lock(mutex_);
        posted_.push_back({std::move(work), peer, tag, sends, deadline});
    }
    tell(rank_);
}

void ProcessGroup::Messages::close() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    tell(rank_);
    if (thread_.joinable()) thread_.join();
}

// Wakes the thread of a rank.
void ProcessGroup::Messages::tell(int rank) {
    RankSlot& slot = region_.ranks[rank];
    slot.mail.fetch_add(1);
    if (slot.awaits_mail.load()) futex_wake(slot.mail);
}

bool ProcessGroup::Messages::is_idle() const {
    return receives_.empty() &&
           std::all_of(outgoing_.begin(), outgoing_.end(), [](auto& list) { return list.empty(); }) &&
           std::none_of(incoming_.begin(), incoming_.end(), [](auto& one) { return one && one->receive; });
}

void ProcessGroup::Messages::run() {
    constexpr int64_t kTurn = 20'000'000, kHour = 3600'000'000'000;  // nanoseconds
    RankSlot& mine = region_.ranks[rank_];
    StagesOff plain(kAllStages);
    for (int fruitless = 0;;) {
        const uint32_t seen = mine.mail.load();
        bool closing;
        {
            std::lock_guard lock(mutex_);
            for (Posted& posted : posted_)
                if (posted.sends) outgoing_[static_cast<size_t>(posted.peer)].emplace_back(std::move(posted));
                else receives_.push_back(std::move(posted));
            posted_.clear();
            closing = closing_;
        }
        try {
            group_.raise_if_broken();
            if (step()) {
                fruitless = 0;
                continue;
            }
            if (closing) {
                for (const Posted& receive : receives_)
                    finish(receive.work,
                           std::make_exception_ptr(
                               Error(ErrorKind::Runtime, receive.work->text_ + ": the group was destroyed")));
                receives_.clear();
            }
            check_peers();
        } catch (...) {
            group_.abort("rank " + std::to_string(rank_) + " failed while it exchanged messages");
            fail_all(std::current_exception());
        }
        const bool idle = is_idle();
        if (idle && closing) return;
        if (!idle && ++fruitless < 1000) {
            __builtin_ia32_pause();
            continue;
        }
        mine.awaits_mail.store(1);
        futex_wait(mine.mail, seen, idle ? kHour : kTurn);
        mine.awaits_mail.store(0);
    }
}

// Transfers all bytes that can be transferred without waiting. Returns whether there were any.
bool ProcessGroup::Messages::step() {
    bool moved = take_early();
    for (int peer = 0; peer < size_; ++peer) {
        while (send_some(peer)) moved = true;
        while (receive_some(peer)) moved = true;
    }
    return moved;
}

bool ProcessGroup::Messages::send_some(int to) {
    auto& list = outgoing_[static_cast<size_t>(to)];
    if (list.empty()) return false;
    Outgoing& message = list.front();
    Ring& ring = region_.ring(size_, rank_, to);
    const uint64_t at = ring.written.load(std::memory_order_relaxed);
    int64_t room = kRing - static_cast<int64_t>(at - ring.read.load(std::memory_order_acquire));
    int64_t n = 0;
    if (message.sent == 0) {
        if (room < kHeader) return false;
        to_ring(ring, at, reinterpret_cast<const char*>(&message.header), kHeader);
        n = kHeader;
    }
    const int64_t begin = message.sent + n - kHeader;
    const int64_t more = std::min(room - n, message.header.bytes - begin);
    if (n + more == 0 && message.header.bytes > begin) return false;
    message.elements.walk(begin, more, [&](const char* part, int64_t bytes) {
        to_ring(ring, at + static_cast<uint64_t>(n), part, bytes);
        n += bytes;
    });
    message.sent += n;
    ring.written.store(at + static_cast<uint64_t>(n), std::memory_order_release);
    tell(to);
    if (message.sent == kHeader + message.header.bytes) {
        finish(message.work, nullptr);
        list.pop_front();
    }
    return true;
}

// Whether a receive is posted that accepts messages of a rank.
bool ProcessGroup::Messages::is_wanted(int from) const {
    return std::any_of(receives_.begin(), receives_.end(),
                       [&](auto& receive) { return receive.peer < 0 || receive.peer == from; });
}

// Reads the header of the next message, and determines the destination of its elements.
bool ProcessGroup::Messages::begin_message(int from) {
    Ring& ring = region_.ring(size_, from, rank_);
    const uint64_t at = ring.read.load(std::memory_order_relaxed);
    if (static_cast<int64_t>(ring.written.load(std::memory_order_acquire) - at) < kHeader) return false;
    if (!is_wanted(from)) return false;
    auto message = std::make_unique<Incoming>();
    from_ring(ring, at, reinterpret_cast<char*>(&message->header), kHeader);
    ring.read.store(at + kHeader, std::memory_order_release);
    for (auto it = receives_.begin(); it != receives_.end(); ++it) {
        if ((it->peer >= 0 && it->peer != from) || it->tag != message->header.tag) continue;
        message->error = mismatch(*it, from, message->header);
        message->receive = std::make_unique<Posted>(std::move(*it));
        receives_.erase(it);
        break;
    }
    if (!message->receive) message->memory.resize(static_cast<size_t>(message->header.bytes));
    incoming_[static_cast<size_t>(from)] = std::move(message);
    return true;
}

bool ProcessGroup::Messages::receive_some(int from) {
    auto& message = incoming_[static_cast<size_t>(from)];
    if (!message && !begin_message(from)) return false;
    Ring& ring = region_.ring(size_, from, rank_);
    const uint64_t at = ring.read.load(std::memory_order_relaxed);
    const auto there = static_cast<int64_t>(ring.written.load(std::memory_order_acquire) - at);
    const int64_t left = message->header.bytes - message->got;
    const int64_t n = std::min(there, left);
    if (n == 0 && left > 0) return false;
    if (!message->receive) {
        from_ring(ring, at, message->memory.data() + message->got, n);
    } else if (!message->error) {
        uint64_t next = at;
        Sequence(message->receive->work->what_.inputs).walk(message->got, n, [&](char* part, int64_t bytes) {
            from_ring(ring, next, part, bytes);
            next += static_cast<uint64_t>(bytes);
        });
    }
    message->got += n;
    ring.read.store(at + static_cast<uint64_t>(n), std::memory_order_release);
    tell(from);
    if (n < left) return true;
    if (message->receive) {
        message->receive->work->source_ = from;
        finish(message->receive->work, message->error);
    } else {
        early_[static_cast<size_t>(from)].push_back({message->header, std::move(message->memory)});
    }
    message.reset();
    take_early();
    return true;
}

// Passes messages that arrived early to the receives that have been posted since.
bool ProcessGroup::Messages::take_early() {
    bool moved = false;
    for (auto it = receives_.begin(); it != receives_.end();) {
        bool taken = false;
        for (int from = 0; from < size_ && !taken; ++from) {
            if (it->peer >= 0 && it->peer != from) continue;
            auto& list = early_[static_cast<size_t>(from)];
            auto found = std::find_if(list.begin(), list.end(),
                                      [&](const Early& one) { return one.header.tag == it->tag; });
            if (found == list.end()) continue;
            std::exception_ptr error = mismatch(*it, from, found->header);
            if (!error) Sequence(it->work->what_.inputs).write(0, found->header.bytes, found->bytes.data());
            it->work->source_ = from;
            finish(it->work, error);
            list.erase(found);
            taken = true;
        }
        it = taken ? receives_.erase(it) : std::next(it);
        moved = moved || taken;
    }
    return moved;
}

std::exception_ptr ProcessGroup::Messages::mismatch(const Posted& receive, int from,
                                                    const MessageHeader& header) const {
    const Tensor& t = receive.work->what_.inputs[0];
    const auto dtype = static_cast<DType>(header.dtype);
    if (t.dtype() == dtype && t.numel() == header.elements) return nullptr;
    return std::make_exception_ptr(Error(
        ErrorKind::Runtime,
        "ranks disagree on a message:\n  rank " + std::to_string(from) + ": send of " +
            std::string(name(dtype)) + "[" + std::to_string(header.elements) + "] (" + header.where +
            ")\n  rank " + std::to_string(rank_) + ": " + receive.work->text_ + " (" +
            receive.work->what_.where +
            ")\nhint: the tensors of a send and its recv must have the same dtype and number of elements"));
}

void ProcessGroup::Messages::finish(const Work& work, std::exception_ptr error) {
    try {
        if (!error)
            for (auto& [output, stand_in] : work->copies_) ops::copy_(output, stand_in);
    } catch (...) { error = std::current_exception(); }
    work->finish(error);
}

// Calls a function with each message under way.
template <class F>
void ProcessGroup::Messages::each(F visit) const {
    for (auto& list : outgoing_)
        for (auto& message : list) visit(static_cast<const Posted&>(message));
    for (auto& message : incoming_)
        if (message && message->receive) visit(*message->receive);
    for (auto& receive : receives_) visit(receive);
}

// Breaks the group if a message can no longer arrive, or has not arrived in time.
void ProcessGroup::Messages::check_peers() {
    const auto now = std::chrono::steady_clock::now();
    std::string why;
    each([&](const Posted& posted) {
        if (!why.empty()) return;
        const std::string here = "rank " + std::to_string(rank_) + "'s " + posted.work->text_ + " (" +
                                 posted.work->what_.where + ")";
        int gone = 0;
        for (int r = 0; r < size_; ++r) {
            if (r == rank_ || (posted.peer >= 0 && posted.peer != r)) continue;
            const RankSlot& other = region_.ranks[r];
            const RankState state = other.state.load(std::memory_order_acquire);
            const bool left = state == RankState::Left;
            if (state == RankState::Absent || (!left && start_of_process(other.process) == other.started))
                continue;
            // Bytes that a rank wrote before it ended are still read.
            const Ring& ring = region_.ring(size_, r, rank_);
            if (!posted.sends && ring.written.load() != ring.read.load()) continue;
            if (!left)
                why = "rank " + std::to_string(r) + " (process " + std::to_string(other.process) +
                      ") ended before " + here;
            else if (posted.peer >= 0 || ++gone == size_ - 1)
                why = "rank " + std::to_string(r) + " left the group before " + here;
            if (!why.empty()) return;
        }
        if (why.empty() && now > posted.deadline) {
            char seconds[32];
            std::snprintf(seconds, sizeof(seconds), "%g", group_.timeout_.load());
            why = here + " timed out after " + seconds + " seconds";
        }
    });
    if (!why.empty()) group_.fail(why);
}

void ProcessGroup::Messages::fail_all(const std::exception_ptr& error) {
    each([&](const Posted& posted) { posted.work->finish(error); });
    for (auto& list : outgoing_) list.clear();
    for (auto& message : incoming_) message.reset();
    receives_.clear();
}

// --- the group's part ---

std::shared_ptr<CollectiveWork> ProcessGroup::post(const Tensor& tensor, int peer, int tag,
                                                   const std::string& where, bool sends) {
    auto work = std::make_shared<CollectiveWork>();
    work->what_.where = where;
    check_member();
    std::unique_lock lock(mutex_);
    RL_CHECK(
        !closed_, throw_runtime,
        "ProcessGroup: the group was destroyed\nhint: call init_process_group() to create another group");
    raise_if_broken();
    prepare_message(*work, tensor, peer, tag, sends);
    if (!messages_) messages_ = std::make_unique<Messages>(*this);
    messages_->post(work, peer, tag, sends);
    return work;
}

std::shared_ptr<CollectiveWork> ProcessGroup::send(const Tensor& tensor, int to, int tag,
                                                   const std::string& where) {
    return post(tensor, to, tag, where, true);
}

std::shared_ptr<CollectiveWork> ProcessGroup::receive(const Tensor& tensor, int from, int tag,
                                                      const std::string& where) {
    return post(tensor, from, tag, where, false);
}

}  // namespace rushlight
