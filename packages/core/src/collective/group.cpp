#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "collective/messages.h"
#include "collective/region.h"
#include "collective/sequence.h"
#include "rushlight/dispatch.h"
#include "rushlight/interrupt.h"
#include "rushlight/ops/copy_.h"

namespace rushlight {

bool CollectiveWork::done() const {
    std::lock_guard lock(mutex_);
    return done_;
}

std::exception_ptr CollectiveWork::error() const {
    std::lock_guard lock(mutex_);
    return error_;
}

bool CollectiveWork::wait(double seconds) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(std::max(seconds, 0.0)));
    std::unique_lock lock(mutex_);
    while (!done_) {
        if (seconds >= 0 && Clock::now() >= end) return false;
        changed_.wait_for(lock, std::chrono::milliseconds(20));
        if (done_) break;
        lock.unlock();
        check_interrupted();
        lock.lock();
    }
    if (error_) std::rethrow_exception(error_);
    return true;
}

void CollectiveWork::finish(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    what_.inputs.clear();
    what_.outputs.clear();
    copies_.clear();
    error_ = error;
    done_ = true;
    changed_.notify_all();
}

size_t ProcessGroup::file_bytes(int size) { return CollectiveRegion::bytes(size); }

ProcessGroup::ProcessGroup(int fd, int rank, int size, double timeout)
    : rank_(rank), size_(size), timeout_(timeout), process_(getpid()) {
    RL_CHECK(size >= 1 && size <= kMaxRanks, throw_value,
             "ProcessGroup(size): must be from 1 to %d on one machine, got %d", kMaxRanks, size);
    RL_CHECK(rank >= 0 && rank < size, throw_value, "ProcessGroup(rank): must be from 0 to %d, got %d",
             size - 1, rank);
    void* data = mmap(nullptr, file_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RL_CHECK(data != MAP_FAILED, throw_out_of_memory, "ProcessGroup(): cannot map %zu bytes: %s",
             file_bytes(size), strerror(errno));
    region_ = static_cast<CollectiveRegion*>(data);
    RankSlot& mine = region_->ranks[rank];
    mine.process = process_;
    mine.started = start_of_process(process_);
    RankState expected = RankState::Absent;
    if (!mine.state.compare_exchange_strong(expected, RankState::Joined)) {
        munmap(data, file_bytes(size));
        throw_runtime("ProcessGroup(): another process has rank %d already", rank);
    }
}

ProcessGroup::~ProcessGroup() {
    close();
    munmap(region_, file_bytes(size_));
}

void ProcessGroup::close() {
    if (getpid() != process_) return;
    {
        std::unique_lock lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    if (messages_) messages_->close();
    std::unique_lock lock(mutex_);
    while (busy_) changed_.wait(lock);
    RankSlot& mine = region_->ranks[rank_];
    mine.state.store(RankState::Left, std::memory_order_release);
    futex_wake(mine.step);
}

bool ProcessGroup::is_member() const { return getpid() == process_; }

void ProcessGroup::check_member() const {
    RL_CHECK(is_member(), throw_runtime,
             "ProcessGroup: this process was forked from rank %d and is not a member of the group\n"
             "hint: start the process before the call of init_process_group(), or call init_process_group() "
             "in the new process",
             rank_);
}

std::shared_ptr<CollectiveWork> ProcessGroup::submit(Collective what, bool async) {
    auto work = std::make_shared<CollectiveWork>();
    work->what_ = std::move(what);
    check_member();  // before the lock: another thread of the parent may have held it during the fork
    std::unique_lock lock(mutex_);
    RL_CHECK(
        !closed_, throw_runtime,
        "ProcessGroup: the group was destroyed\nhint: call init_process_group() to create another group");
    raise_if_broken();
    prepare(*work);
    if (!async && queue_.empty() && !busy_) {
        busy_ = true;
        lock.unlock();
        run(*work);
        lock.lock();
        busy_ = false;
        changed_.notify_all();
        lock.unlock();
    } else {
        queue_.push_back(work);
        if (!thread_.joinable()) thread_ = std::thread([this] { this->work(); });
        changed_.notify_all();
        lock.unlock();
    }
    if (!async) work->wait(-1);
    return work;
}

// The loop of the group's thread.
void ProcessGroup::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        while ((queue_.empty() || busy_) && !(closed_ && queue_.empty())) changed_.wait(lock);
        if (queue_.empty()) return;
        auto next = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        lock.unlock();
        run(*next);
        next.reset();
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

void ProcessGroup::run(CollectiveWork& work) {
    std::exception_ptr error;
    first_ = true;
    intact_ = false;
    try {
        StagesOff plain(kAllStages);
        deadline_ = std::chrono::steady_clock::now() +
                    std::chrono::milliseconds(static_cast<int64_t>(timeout_ * 1e3));
        raise_if_broken();
        transfer(work);
        for (auto& [output, stand_in] : work.copies_) ops::copy_(output, stand_in);
    } catch (...) {
        error = std::current_exception();
        if (!intact_)
            abort("rank " + std::to_string(rank_) + " was stopped in " + work.text_ + " (" +
                  work.what_.where + ")");
    }
    work.finish(error);
}

// --- steps ---

template <class Write, class Read>
void ProcessGroup::exchange(const CollectiveWork& work, Write write, Read read) {
    RankSlot& mine = region_->ranks[rank_];
    if (first_) {
        StepText& text = region_->text(rank_, step_);
        copy_text(text.what, sizeof(text.what), work.text_);
        copy_text(text.where, sizeof(text.where), work.what_.where);
    }
    write(region_->buffer(size_, rank_, step_));
    mine.step.store(step_ + 1);
    if (mine.sleepers.load()) futex_wake(mine.step);
    for (int i = 1; i < size_; ++i) wait_for((rank_ + i) % size_, step_ + 1, work);
    const uint32_t step = step_++;
    if (std::exchange(first_, false)) {
        --step_;
        compare_texts();
        ++step_;
    }
    read([&](int rank) { return static_cast<const char*>(region_->buffer(size_, rank, step)); });
}

// Raises the same error on every rank if a rank's operation differs from rank 0's.
void ProcessGroup::compare_texts() {
    const StepText& first = region_->text(0, step_);
    for (int r = 1; r < size_; ++r) {
        const StepText& other = region_->text(r, step_);
        if (std::strncmp(first.what, other.what, sizeof(first.what)) == 0) continue;
        ++step_;
        intact_ = true;
        throw_runtime(
            "ranks disagree on the next collective:\n  rank 0: %s (%s)\n  rank %d: %s (%s)\n"
            "hint: every rank must call the same collectives, with the same dtype and size, in the same order",
            first.what, first.where, r, other.what, other.where);
    }
}

void ProcessGroup::wait_for(int rank, uint32_t step, const CollectiveWork& work) {
    constexpr int64_t kTurn = 20'000'000;  // nanoseconds
    RankSlot& other = region_->ranks[rank];
    auto there = [&] { return static_cast<int32_t>(other.step.load(std::memory_order_acquire) - step) >= 0; };
    for (int i = 0; i < 2000; ++i) {
        if (there()) return;
        __builtin_ia32_pause();
    }
    auto missing = [&] {
        std::string text;
        for (int r = 0; r < size_; ++r)
            if (static_cast<int32_t>(region_->ranks[r].step.load() - step) < 0)
                text += (text.empty() ? "" : ", ") + std::to_string(r);
        return text;
    };
    const std::string here = work.text_ + " (" + work.what_.where + ")";
    for (;;) {
        other.sleepers.fetch_add(1);
        const uint32_t seen = other.step.load();
        if (!there()) futex_wait(other.step, seen, kTurn);
        other.sleepers.fetch_sub(1);
        if (there()) return;
        raise_if_broken();
        const RankState state = other.state.load(std::memory_order_acquire);
        if (state == RankState::Left && !there())
            fail("rank " + std::to_string(rank) + " left the group before rank " + std::to_string(rank_) +
                 "'s " + here);
        if (state == RankState::Joined && start_of_process(other.process) != other.started && !there())
            fail("rank " + std::to_string(rank) + " (process " + std::to_string(other.process) +
                 ") ended before it took part in rank " + std::to_string(rank_) + "'s " + here);
        if (std::chrono::steady_clock::now() > deadline_) {
            char seconds[32];
            std::snprintf(seconds, sizeof(seconds), "%g", timeout_.load());
            fail("rank " + std::to_string(rank_) + "'s " + here + " timed out: ranks " + missing() +
                 " did not take part within " + seconds + " seconds");
        }
        check_interrupted();
    }
}

// --- broken groups ---

void ProcessGroup::abort(const std::string& why) {
    uint32_t whole = 0;
    if (!region_->broken.compare_exchange_strong(whole, 1)) return;
    copy_text(region_->why, sizeof(region_->why), why);
    region_->broken.store(2, std::memory_order_release);
    for (int r = 0; r < size_; ++r) {
        futex_wake(region_->ranks[r].step);
        futex_wake(region_->ranks[r].mail);
    }
}

void ProcessGroup::raise_if_broken() const {
    if (region_->broken.load(std::memory_order_acquire) == 0) [[likely]]
        return;
    // Wait for another rank to finish writing the text, unless that rank was killed meanwhile.
    for (int i = 0; i < 1000 && region_->broken.load(std::memory_order_acquire) == 1; ++i) usleep(100);
    const bool known = region_->broken.load(std::memory_order_acquire) == 2;
    throw_runtime("%s\nhint: the group cannot be used any more: call destroy_process_group()",
                  known ? region_->why : "the group is broken: a rank ended while it reported an error");
}

void ProcessGroup::fail(const std::string& why) {
    abort(why);
    raise_if_broken();
    throw_runtime("%s", why.c_str());
}

// --- collectives ---

void ProcessGroup::transfer(CollectiveWork& work) {
    const Collective& what = work.what_;
    const bool root = rank_ == what.root;
    std::vector<Sequence> in, out;
    for (const Tensor& t : what.inputs) in.emplace_back(TensorList(&t, 1));
    for (const Tensor& t : what.outputs) out.emplace_back(TensorList(&t, 1));
    // For collectives that accept any number of tensors.
    Sequence all(what.inputs);
    const DType dtype = what.inputs.empty() ? DType::UInt8 : what.inputs[0].dtype();
    const auto item = static_cast<int64_t>(itemsize(dtype));
    // Bytes of a part, in a buffer that has a part for each rank.
    const int64_t piece = kChunk / size_ / 64 * 64;
    std::vector<char> scratch;

    auto chunks = [](int64_t total, int64_t size, auto body) {
        int64_t at = 0;
        do {
            const int64_t n = std::min(size, total - at);
            body(at, n);
            at += n;
        } while (at < total);
    };
    // Reduces bytes [from, from + n) of the buffers of all ranks, and writes the results to a sequence, beginning at
    // byte `at`.
    auto reduce = [&](auto buffer, int64_t from, int64_t n, Sequence& to, int64_t at) {
        if (n == 0) return;
        std::vector<const char*> parts;
        for (int r = 0; r < size_; ++r) parts.push_back(buffer(r) + from);
        if (char* target = to.within(at, n)) return reduce_parts(what.op, dtype, n / item, parts, target);
        scratch.resize(static_cast<size_t>(n));
        reduce_parts(what.op, dtype, n / item, parts, scratch.data());
        to.write(at, n, scratch.data());
    };
    auto nothing = [](auto) {};

    switch (what.kind) {
        case CollectiveKind::Barrier: exchange(work, nothing, nothing); break;
        case CollectiveKind::AllReduce:
            chunks(all.bytes(), kChunk, [&](int64_t at, int64_t n) {
                auto write = [&](char* to) { all.read(at, n, to); };
                if (size_ <= 2)
                    return exchange(work, write, [&](auto buffer) { reduce(buffer, 0, n, all, at); });
                // Each rank reduces a slice of the chunk, and the slices are gathered.
                const int64_t slice = (n / size_ / 64 + 1) * 64;
                auto begin = [&](int r) { return std::min(n, r * slice); };
                const int64_t mine = begin(rank_ + 1) - begin(rank_);
                std::vector<char> sum(static_cast<size_t>(mine));
                exchange(work, write, [&](auto buffer) {
                    std::vector<const char*> parts;
                    for (int r = 0; r < size_; ++r) parts.push_back(buffer(r) + begin(rank_));
                    reduce_parts(what.op, dtype, mine / item, parts, sum.data());
                });
                exchange(
                    work, [&](char* to) { std::copy(sum.begin(), sum.end(), to); },
                    [&](auto buffer) {
                        for (int r = 0; r < size_; ++r)
                            all.write(at + begin(r), begin(r + 1) - begin(r), buffer(r));
                    });
            });
            break;
        case CollectiveKind::Reduce:
            chunks(all.bytes(), kChunk, [&](int64_t at, int64_t n) {
                exchange(
                    work, [&](char* to) { all.read(at, n, to); },
                    [&](auto buffer) {
                        if (root) reduce(buffer, 0, n, all, at);
                    });
            });
            break;
        case CollectiveKind::Broadcast:
            chunks(all.bytes(), kChunk, [&](int64_t at, int64_t n) {
                exchange(
                    work,
                    [&](char* to) {
                        if (root) all.read(at, n, to);
                    },
                    [&](auto buffer) {
                        if (!root) all.write(at, n, buffer(what.root));
                    });
            });
            break;
        case CollectiveKind::Gather:
        case CollectiveKind::AllGather:
            chunks(in[0].bytes(), kChunk, [&](int64_t at, int64_t n) {
                exchange(
                    work, [&](char* to) { in[0].read(at, n, to); },
                    [&](auto buffer) {
                        for (int r = 0; r < static_cast<int>(out.size()); ++r)
                            out[static_cast<size_t>(r)].write(at, n, buffer(r));
                    });
            });
            break;
        case CollectiveKind::Scatter:
        case CollectiveKind::ReduceScatter:
        case CollectiveKind::AllToAll:
            chunks(out[0].bytes(), piece, [&](int64_t at, int64_t n) {
                exchange(
                    work,
                    [&](char* to) {
                        for (size_t r = 0; r < in.size(); ++r)
                            in[r].read(at, n, to + static_cast<int64_t>(r) * piece);
                    },
                    [&](auto buffer) {
                        if (what.kind == CollectiveKind::Scatter)
                            out[0].write(at, n, buffer(what.root) + rank_ * piece);
                        else if (what.kind == CollectiveKind::ReduceScatter)
                            reduce(buffer, rank_ * piece, n, out[0], at);
                        else
                            for (int r = 0; r < size_; ++r)
                                out[static_cast<size_t>(r)].write(at, n, buffer(r) + rank_ * piece);
                    });
            });
            break;
    }
}

}  // namespace rushlight
