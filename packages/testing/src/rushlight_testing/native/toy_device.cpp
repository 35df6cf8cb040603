// A device that exists only in host memory, to test that core obeys the contract of rushlight/backend.h.
//
// The device runs work as late as the contract allows: the work of a stream runs only when a caller waits for it. With
// RUSHLIGHT_TOY_SEED, work of other streams runs in between, in an order that the seed determines. New memory is filled with
// arbitrary bytes, and memory is overwritten when it is released. Therefore an operator that fails to synchronize, to keep
// its inputs alive, or to order two streams gives wrong results in every run.
//
// Compile this file by itself, against core's headers: c++ -std=c++20 -shared -fPIC -I<core>/include toy_device.cpp
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rushlight/backend.h"
#include "toy_kernels.h"

namespace {

using namespace rushlight;

constexpr int kDevices = 2;
#ifndef RUSHLIGHT_TOY_MEMORY_MIB
#define RUSHLIGHT_TOY_MEMORY_MIB 64  // memory of each device; small, so that a test can exhaust it
#endif
constexpr size_t kMemory = size_t{RUSHLIGHT_TOY_MEMORY_MIB} << 20;
constexpr unsigned char kFresh = 0xCB, kDead = 0xDD;

const HostTable* host;

BackendStatus fail(BackendStatus status, const std::string& text) {
    host->set_error(text.c_str());
    return status;
}

// --- Streams: queues that one thread executes, up to the work that a caller waits for ----------------

/// A mutex that is acquired by one atomic operation if it is free. Every call holds it briefly. The thread that
/// runs the work holds it for longer, so threads that wait sleep between their attempts. The thread that runs the work
/// may acquire the mutex again: a kernel that imports LAPACK through Python may start a garbage collection, which
/// releases tensors.
class Lock {
  public:
    void lock() {
        [[gnu::tls_model("initial-exec")]] thread_local const char thread = 0;
        for (int tries = 0;; ++tries) {
            const char* owner = nullptr;
            if (owner_.compare_exchange_strong(owner, &thread, std::memory_order_acquire)) return;
            if (owner == &thread) {
                ++again_;
                return;
            }
            if (tries > 20) std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    void unlock() {
        if (again_) --again_;
        else owner_.store(nullptr, std::memory_order_release);
    }

  private:
    std::atomic<const char*> owner_{nullptr};  // the address of a variable of the thread that holds the mutex
    int again_ = 0;  // further acquisitions by the owner
};

/// A first-in, first-out queue of work. Its records have a fixed size and are not moved. They are stored in chunks,
/// which are reused.
class Tasks {
  public:
    Tasks() = default;
    Tasks(const Tasks&) = delete;
    ~Tasks() {
        for (Chunk* chunk : chunks_) delete chunk;
        for (Chunk* chunk : spare_) delete chunk;
    }
    bool empty() const { return first_ == last_; }
    /// Constructs a T in the queue. The T is called once, later.
    template <class T, class... A>
    void push(A&&... arguments) {
        static_assert(sizeof(T) <= kRoom && alignof(T) <= alignof(std::max_align_t));
        if (next_ == end_) add_chunk();
        Record& record = *next_++;
        new (record.room) T(std::forward<A>(arguments)...);
        record.run = [](void* room) {
            auto* work = static_cast<T*>(room);
            (*work)();
            work->~T();
        };
        ++last_;
    }
    void run_first() {
        Record& record = (*chunks_.front())[first_++];
        record.run(record.room);
        if (first_ != kPerChunk) return;
        spare_.push_back(chunks_.front());
        chunks_.pop_front();
        first_ = 0;
        last_ -= kPerChunk;
    }

  private:
    static constexpr size_t kRoom = 352, kPerChunk = 64;
    struct Record {
        void (*run)(void* room);
        alignas(std::max_align_t) unsigned char room[kRoom];
    };
    using Chunk = std::array<Record, kPerChunk>;
    void add_chunk() {
        if (spare_.empty()) spare_.push_back(new Chunk);
        next_ = chunks_.emplace_back(spare_.back())->data();
        end_ = next_ + kPerChunk;
        spare_.pop_back();
    }

    std::deque<Chunk*> chunks_;
    std::vector<Chunk*> spare_;
    size_t first_ = 0, last_ = 0;  // positions, counted from the start of the first chunk
    Record *next_ = nullptr, *end_ = nullptr;  // the free part of the last chunk
};

/// Recorded work, which can be run any number of times. The work of all streams is in one list, in the order of
/// recording.
struct Graph {
    struct Step {
        virtual ~Step() = default;
        virtual void run() = 0;
    };
    template <class T>
    struct StepOf final : Step {
        template <class... A>
        explicit StepOf(A&&... arguments) : work(std::forward<A>(arguments)...) {}
        void run() override { work(); }
        T work;
    };

    std::vector<std::unique_ptr<Step>> steps;
    bool recording = true;
};

struct Stream {
    Tasks queue;
    std::shared_ptr<Graph> graph;  // where work is recorded; null if it is executed
    uint64_t queued = 0, done = 0;  // tickets: the n-th piece of work has ticket n
    uint64_t wanted = 0;  // run up to this ticket
};

struct Event {
    Stream* stream = nullptr;  // null: never recorded, which counts as reached
    uint64_t ticket = 0;
    std::shared_ptr<Graph> graph;  // the graph in which the mark was recorded
    // The time at which the event was reached, for events with timing.
    std::shared_ptr<std::chrono::steady_clock::time_point> passed;
};

struct Block {
    size_t nbytes;
    Stream* stream;
    std::vector<Stream*> also_used_on;
};

/// The errors of queued work of a device, which are kept until a caller waits for the device. The queue's mutex guards
/// them. All of them are reported together, in the order in which they occurred, because later errors are often
/// consequences of the first. Only the texts of the first `kTexts` errors are kept, so that a loop that fails in every
/// step does not use more and more memory.
struct LateErrors {
    struct One {
        BackendStatus status;
        std::string text;
        DeviceCall call;
    };
    static constexpr size_t kTexts = 8;
    std::vector<One> first;
    size_t others = 0;

    void add(BackendStatus status, const char* text, const DeviceCall& call) {
        if (first.size() < kTexts) first.push_back({status, text, call});
        else ++others;
    }
};

struct ToyDevice {
    std::unique_ptr<Stream> default_stream = std::make_unique<Stream>();
    std::vector<std::unique_ptr<Stream>> streams;
    std::unordered_map<void*, Block> live;
    size_t used = 0;  // live blocks, and released blocks whose queued release has not run
    LateErrors late;
};

class Queue {
  public:
    Queue() : worker_([this] { work(); }) {
        worker_.detach();
        if (const char* seed = std::getenv("RUSHLIGHT_TOY_SEED"))
            random_ = std::make_unique<std::mt19937>(static_cast<unsigned>(std::atoi(seed)));
    }

    /// Requires that the caller holds `mutex`.
    template <class T>
    void push(Stream* stream, T&& work) {
        make<std::decay_t<T>>(stream, std::forward<T>(work));
    }
    /// Adds work like the function above, but constructs the T from `arguments` in the queue.
    template <class T, class... A>
    void make(Stream* stream, A&&... arguments) {
        if (stream->graph) {
            stream->graph->steps.push_back(std::make_unique<Graph::StepOf<T>>(std::forward<A>(arguments)...));
            return;
        }
        const bool idle = stream->queue.empty();
        stream->queue.push<T>(std::forward<A>(arguments)...);
        if (idle) busy_.push_back(stream);
        ++stream->queued;
    }
    /// Makes later work of `stream` wait until another stream has reached a ticket.
    void order(Stream* stream, Stream* other, uint64_t ticket) {
        if (stream == other || other->done >= ticket) return;
        push(stream, [this, other, ticket] { run_to(other, ticket); });
    }
    void wait(std::unique_lock<Lock>& lock, Stream* stream, uint64_t ticket) {
        stream->wanted = std::max(stream->wanted, ticket);
        if (std::find(waited_.begin(), waited_.end(), stream) == waited_.end()) waited_.push_back(stream);
        wake_.notify_one();
        finished_.wait(lock, [&] { return stream->done >= ticket; });
    }

    Lock mutex;

  private:
    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            wake_.wait(lock, [this] { return !waited_.empty(); });
            Stream* stream = waited_.back();
            waited_.pop_back();
            run_to(stream, stream->wanted);
            finished_.notify_all();
        }
    }
    // The work runs while the mutex is held: kernels are short.
    void run_to(Stream* stream, uint64_t ticket) {
        while (stream->done < ticket) {
            // Not within a task, because a task of another stream may wait for the running one.
            const bool any = random_ && depth_ == 0 && (*random_)() % 2 == 0;
            run_one(any ? busy_[(*random_)() % busy_.size()] : stream);
        }
    }
    void run_one(Stream* stream) {
        ++depth_;
        stream->queue.run_first();
        --depth_;
        if (stream->queue.empty()) std::erase(busy_, stream);
        ++stream->done;
    }

    std::condition_variable_any wake_, finished_;
    std::vector<Stream*> waited_, busy_;
    std::unique_ptr<std::mt19937> random_;
    int depth_ = 0;  // number of nested tasks that wait for other tasks
    std::thread worker_;
};

// Made by `init`. Never destroyed, since the worker thread and the storages of static tensors outlive main().
Queue* the_queue = nullptr;
ToyDevice* devices = nullptr;

Queue& queue() { return *the_queue; }
ToyDevice& device(int32_t index) { return devices[index]; }
Stream* stream_of(int32_t index, void* stream) {
    return stream ? static_cast<Stream*>(stream) : device(index).default_stream.get();
}
void wait_for_all(std::unique_lock<Lock>& lock, ToyDevice& d) {
    queue().wait(lock, d.default_stream.get(), d.default_stream->queued);
    // Iterate by index: the wait releases the lock, so a stream may be added meanwhile.
    for (size_t i = 0; i < d.streams.size(); ++i)
        queue().wait(lock, d.streams[i].get(), d.streams[i]->queued);
}

BackendStatus create_stream(int32_t index, int32_t, void** stream) {
    std::lock_guard lock(queue().mutex);
    *stream = device(index).streams.emplace_back(std::make_unique<Stream>()).get();
    return BackendStatus::Ok;
}
BackendStatus destroy_stream(int32_t index, void* stream) {
    std::unique_lock lock(queue().mutex);
    auto* own = stream_of(index, stream);
    queue().wait(lock, own, own->queued);  // not deleted: events and blocks may still refer to it
    return BackendStatus::Ok;
}
/// Reports all errors of a device since the last call, with the status of the first. Releases the lock first, since core may
/// need another lock to describe where a kernel was queued.
BackendStatus report(std::unique_lock<Lock>& lock, int32_t index) {
    const LateErrors errors = std::exchange(device(index).late, {});
    lock.unlock();
    if (errors.first.empty()) return BackendStatus::Ok;
    std::string text;
    for (const auto& error : errors.first) {
        char where[200];
        host->describe(&error.call, where, sizeof where);
        text += (text.empty() ? "queued by " : "\nalso queued by ") + std::string(where) + ": " + error.text;
    }
    if (errors.others > 0) text += "\nand " + std::to_string(errors.others) + " further errors";
    return fail(errors.first.front().status, text);
}
BackendStatus finish(std::unique_lock<Lock>& lock, int32_t index, Stream* stream) {
    if (stream->graph) return fail(BackendStatus::Runtime, "cannot wait for a stream that is being captured");
    queue().wait(lock, stream, stream->queued);
    return report(lock, index);
}
BackendStatus synchronize_stream(int32_t index, void* stream) {
    std::unique_lock lock(queue().mutex);
    return finish(lock, index, stream_of(index, stream));
}
BackendStatus synchronize_device(int32_t index) {
    std::unique_lock lock(queue().mutex);
    for (const auto& stream : device(index).streams)
        if (stream->graph)
            return fail(BackendStatus::Runtime,
                        "cannot wait for the device while one of its streams is being captured");
    wait_for_all(lock, device(index));
    return report(lock, index);
}

BackendStatus create_event(int32_t, int32_t flags, void** event) {
    auto* made = new Event;
    if (flags & kTimedEvent) made->passed = std::make_shared<std::chrono::steady_clock::time_point>();
    *event = made;
    return BackendStatus::Ok;
}
BackendStatus destroy_event(int32_t, void* event) {
    delete static_cast<Event*>(event);
    return BackendStatus::Ok;
}
BackendStatus record_event(int32_t index, void* event, void* stream) {
    std::lock_guard lock(queue().mutex);
    auto* own = stream_of(index, stream);
    auto* mark = static_cast<Event*>(event);
    if (mark->passed)
        queue().push(own, [passed = mark->passed] { *passed = std::chrono::steady_clock::now(); });
    mark->stream = own;
    mark->ticket = own->queued;
    mark->graph = own->graph;
    return BackendStatus::Ok;
}
BackendStatus wait_event(int32_t index, void* event, void* stream) {
    std::lock_guard lock(queue().mutex);
    auto* mark = static_cast<Event*>(event);
    Stream* own = stream_of(index, stream);
    if (mark->graph || own->graph) {
        // The list of a graph keeps the order of all its streams. A stream that waits for one of them joins the graph.
        if (mark->graph == own->graph) return BackendStatus::Ok;
        if (own->graph || !mark->graph->recording)
            return fail(BackendStatus::Runtime, "a captured stream cannot wait for work outside the capture");
        own->graph = mark->graph;
    } else if (mark->stream) {
        queue().order(own, mark->stream, mark->ticket);
    }
    return BackendStatus::Ok;
}
BackendStatus query_event(int32_t, void* event, int32_t* reached) {
    std::lock_guard lock(queue().mutex);
    auto* mark = static_cast<Event*>(event);
    *reached = !mark->stream || mark->stream->done >= mark->ticket;
    return BackendStatus::Ok;
}
BackendStatus synchronize_event(int32_t index, void* event) {
    std::unique_lock lock(queue().mutex);
    auto* mark = static_cast<Event*>(event);
    if (mark->stream) queue().wait(lock, mark->stream, mark->ticket);
    return report(lock, index);
}

BackendStatus elapsed_time(int32_t, void* start, void* end, double* milliseconds) {
    std::lock_guard lock(queue().mutex);
    const auto passed = [](void* event) { return *static_cast<Event*>(event)->passed; };
    *milliseconds = std::chrono::duration<double, std::milli>(passed(end) - passed(start)).count();
    return BackendStatus::Ok;
}

BackendStatus begin_capture(int32_t index, void* stream) {
    std::lock_guard lock(queue().mutex);
    if (!stream) return fail(BackendStatus::Runtime, "the default stream cannot be captured");
    Stream* own = stream_of(index, stream);
    if (own->graph) return fail(BackendStatus::Runtime, "the stream is already being captured");
    own->graph = std::make_shared<Graph>();
    return BackendStatus::Ok;
}
BackendStatus end_capture(int32_t index, void* stream, void** made) {
    std::lock_guard lock(queue().mutex);
    const auto graph = stream_of(index, stream)->graph;
    if (!graph) return fail(BackendStatus::Runtime, "the stream is not being captured");
    graph->recording = false;
    for (const auto& other : device(index).streams)
        if (other->graph == graph) other->graph = nullptr;
    *made = new std::shared_ptr<Graph>(graph);
    return BackendStatus::Ok;
}
BackendStatus replay(int32_t index, void* graph, void* stream) {
    std::lock_guard lock(queue().mutex);
    queue().push(stream_of(index, stream), [graph = *static_cast<std::shared_ptr<Graph>*>(graph)] {
        for (const auto& step : graph->steps) step->run();
    });
    return BackendStatus::Ok;
}
BackendStatus destroy_graph(int32_t, void* graph) {
    std::lock_guard lock(queue().mutex);
    delete static_cast<std::shared_ptr<Graph>*>(graph);
    return BackendStatus::Ok;
}

// --- Memory --------------------------------------------------------------------------------------

BackendStatus allocate(int32_t index, size_t nbytes, void* stream, void** data) {
    std::unique_lock lock(queue().mutex);
    ToyDevice& d = device(index);
    if (nbytes > kMemory - d.used) wait_for_all(lock, d);  // queued releases may free enough memory
    if (nbytes > kMemory - d.used) {
        return fail(BackendStatus::OutOfMemory,
                    "toy:" + std::to_string(index) + " has no " + std::to_string(nbytes) + " bytes: " +
                        std::to_string(d.used) + " of " + std::to_string(kMemory) + " are in use");
    }
    *data = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
    if (!*data) return fail(BackendStatus::OutOfMemory, "the host is out of memory for the toy device");
    std::memset(*data, kFresh, nbytes);
    d.used += nbytes;
    d.live[*data] = {nbytes, stream_of(index, stream), {}};
    return BackendStatus::Ok;
}

BackendStatus release(int32_t index, void* data, size_t nbytes) {
    std::lock_guard lock(queue().mutex);
    ToyDevice& d = device(index);
    auto found = d.live.find(data);
    if (found == d.live.end() || found->second.nbytes != nbytes)
        return fail(BackendStatus::Runtime, "release: there is no live block with this address and size");
    Block block = std::move(found->second);
    d.live.erase(found);
    for (Stream* other : block.also_used_on) queue().order(block.stream, other, other->queued);
    queue().push(block.stream, [&d, data, nbytes] {
        std::memset(data, kDead, nbytes);
        std::free(data);
        d.used -= nbytes;
    });
    return BackendStatus::Ok;
}

BackendStatus record_use(int32_t index, void* data, void* stream) {
    std::lock_guard lock(queue().mutex);
    auto found = device(index).live.find(data);
    if (found == device(index).live.end())
        return fail(BackendStatus::Runtime, "record_use: there is no live block with this address");
    found->second.also_used_on.push_back(stream_of(index, stream));
    return BackendStatus::Ok;
}

// The memory of the last device is managed by core's allocator.

std::atomic<size_t> mapped{0};

void* map(void*, size_t nbytes) {
    if (mapped.fetch_add(nbytes) + nbytes > kMemory) {
        mapped -= nbytes;
        return nullptr;
    }
    void* data = std::aligned_alloc(512, (nbytes + 511) / 512 * 512);
    if (data) std::memset(data, kFresh, nbytes);
    else mapped -= nbytes;
    return data;
}
void unmap(void* self, void* data, size_t nbytes) {
    {
        std::unique_lock lock(queue().mutex);
        wait_for_all(lock, device(*static_cast<int32_t*>(self)));
    }
    mapped -= nbytes;
    std::free(data);
}
void* record_mark(void* self, void* stream) {
    auto* mark = new Event;
    record_event(*static_cast<int32_t*>(self), mark, stream);
    return mark;
}
int32_t reached(void* self, void* mark) {
    int32_t answer = 0;
    query_event(*static_cast<int32_t*>(self), mark, &answer);
    return answer;
}
void wait_for_mark(void*, void* event) {
    std::unique_lock lock(queue().mutex);
    auto* mark = static_cast<Event*>(event);
    if (mark->stream) queue().wait(lock, mark->stream, mark->ticket);
}
void destroy_mark(void*, void* mark) { delete static_cast<Event*>(mark); }

int32_t last_device = kDevices - 1;
const AllocatorDriver driver{sizeof(AllocatorDriver), &last_device, map, unmap, record_mark, reached,
                             wait_for_mark,           destroy_mark};

BackendStatus copy(const DeviceCopy* given) {
    std::unique_lock lock(queue().mutex);
    const DeviceCopy c = *given;
    const int32_t index = c.kind == CopyKind::DeviceToHost ? c.source_device : c.target_device;
    Stream* own = stream_of(index, c.stream);
    if (c.until == CopyUntil::SourceRead) {
        auto* bytes = static_cast<const char*>(c.source);
        queue().push(own, [c, staged = std::vector<char>(bytes, bytes + c.nbytes)] {
            std::memcpy(c.target, staged.data(), staged.size());
        });
    } else {
        queue().push(own, [c] { std::memcpy(c.target, c.source, c.nbytes); });
    }
    if (c.until == CopyUntil::Done) return finish(lock, index, own);
    return BackendStatus::Ok;
}

BackendStatus pin(size_t nbytes, void** data) {
    *data = std::aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
    return *data ? BackendStatus::Ok : fail(BackendStatus::OutOfMemory, "the host has no memory left to pin");
}
BackendStatus unpin(void* data, size_t) {
    std::free(data);
    return BackendStatus::Ok;
}

// --- Kernels: the device's own kernels, or otherwise the CPU's kernels -----------------------------

/// How an operator is computed: by the device's own kernel if this kernel supports the dtypes, otherwise by the CPU's
/// kernel.
struct Choice {
    void (*own)(const KernelArgs* args);
    const void* cpu;
};

// A BackendKernel receives only the arguments of the call. Therefore each choice has its own function, which is instantiated
// from its number.
constexpr int kMaxChoices = 2048;
Choice choices[kMaxChoices];
int num_choices = 0;

/// A copy of the arguments of a call, which outlives the call.
struct Kept {
    explicit Kept(const KernelArgs& given)
        : args(given), call(*given.context->call), random(given.context->random) {
        const int tensors = given.num_outputs + given.num_inputs;
        const View* const first = given.tensors;
        const auto like_first = [first](const View& v) {  // true for all operands of most pointwise calls
            return &v != first && v.sizes == first->sizes && v.strides == first->strides;
        };
        // In units of int64_t.
        size_t length = (tensors * sizeof(View) + given.num_params * sizeof(Param)) / sizeof(int64_t);
        for (int i = 0; i < tensors; ++i) {
            const View& v = given.tensors[i];
            if (v.defined() && !like_first(v)) length += 2 * static_cast<size_t>(v.ndim);
        }
        for (int i = 0; i < given.num_params; ++i) length += behind(given.params[i]);
        if (length > std::size(room)) large.reset(new int64_t[length]);
        int64_t* const start = large ? large.get() : room;
        auto* views = reinterpret_cast<View*>(start);
        auto* params = reinterpret_cast<Param*>(views + tensors);
        auto* next = reinterpret_cast<int64_t*>(params + given.num_params);
        const int64_t *sizes = nullptr, *strides = nullptr;  // the copies of the first tensor's
        for (int i = 0; i < tensors; ++i) {
            View& v = views[i] = given.tensors[i];
            if (!v.defined()) continue;
            const bool again = like_first(given.tensors[i]);
            v.sizes = again ? sizes : take(next, v.sizes, v.ndim);
            v.strides = again ? strides : take(next, v.strides, v.ndim);
            if (i == 0) {
                sizes = v.sizes;
                strides = v.strides;
            }
        }
        for (int i = 0; i < given.num_params; ++i) {
            Param& p = params[i] = given.params[i];
            const size_t words = behind(p);
            if (words == 0) continue;
            const size_t nbytes = p.kind == Param::Kind::String ? p.length : words * sizeof(int64_t);
            std::memcpy(next, p.string, nbytes);
            p.ints = next;
            next += words;
        }
        args.tensors = views;
        args.params = params;
        args.context = nullptr;
    }
    Kept(const Kept&) = delete;

    /// The number of elements that a parameter points to.
    static size_t behind(const Param& p) {
        if (p.kind <= Param::Kind::Float) return 0;  // most parameters are numbers
        if (p.kind == Param::Kind::Ints) return p.length;
        return p.kind == Param::Kind::String ? p.length / sizeof(int64_t) + 1 : 2;
    }
    static const int64_t* take(int64_t*& next, const int64_t* from, int32_t count) {
        int64_t* to = next;
        for (int32_t d = 0; d < count; ++d) *next++ = from[d];
        return to;
    }

    KernelArgs args;
    DeviceCall call;
    PhiloxKey random;
    std::unique_ptr<int64_t[]> large;  // views and parameters that do not fit into `room`
    int64_t room[24];  // views and parameters of most calls; larger records would miss the cache more often
};
static_assert(sizeof(View) % sizeof(int64_t) == 0 && sizeof(Param) % sizeof(int64_t) == 0);

struct Launch {
    Launch(const Choice& how, const KernelArgs& given) : choice(how), kept(given) {}

    void operator()() {
        if (choice.own && (!choice.cpu || takes(&kept.args))) return choice.own(&kept.args);
        PhiloxKey key = kept.random;
        if (const PhiloxKey* base = kept.call.random_base) key = {base->seed, base->offset + key.offset};
        const BackendStatus status = host->run_cpu_kernel(choice.cpu, &kept.args, key);
        if (status != BackendStatus::Ok)
            device(kept.call.device).late.add(status, host->last_error(), kept.call);
    }

    const Choice& choice;
    Kept kept;
};

BackendStatus launch(const Choice& choice, const KernelArgs* args) try {
    std::lock_guard lock(queue().mutex);
    const DeviceCall& call = *args->context->call;
    queue().make<Launch>(stream_of(call.device, call.stream), choice, *args);
    return BackendStatus::Ok;
} catch (const std::bad_alloc&) {
    return fail(BackendStatus::OutOfMemory, "the host is out of memory for the toy device");
}

template <int i>
BackendStatus chosen(const KernelArgs* args) {
    return launch(choices[i], args);
}
template <int... i>
constexpr auto make_kernels(std::integer_sequence<int, i...>) {
    return std::array<BackendKernel, sizeof...(i)>{chosen<i>...};
}
constexpr auto kernels = make_kernels(std::make_integer_sequence<int, kMaxChoices>());

BackendStatus kernel(const char* name, uint64_t hash, KernelPart part, BackendKernel* result) {
    // Schemas are not compared: the kernels above accept the arguments of every overload.
    const std::string_view wanted = name;
    Choice choice{wanted == "copy"                              ? copy_kernel
                  : wanted == "add"                             ? add_kernel
                  : wanted == "mul"                             ? mul_kernel
                  : wanted.substr(0, wanted.find('.')) == "sum" ? sum_kernel
                                                                : nullptr,
                  nullptr};
    const BackendStatus status = host->cpu_kernel(name, hash, part, &choice.cpu);
    if (status != BackendStatus::Ok || (!choice.own && !choice.cpu)) return status;
    if (num_choices == kMaxChoices)
        return fail(BackendStatus::Runtime,
                    "the toy device supports no further operators: its table is full");
    choices[num_choices] = choice;
    *result = kernels[static_cast<size_t>(num_choices++)];
    return BackendStatus::Ok;
}

BackendStatus probe(const HostTable*) { return BackendStatus::Ok; }
BackendStatus init(const HostTable* table) {
    host = table;
    if (!the_queue) {
        the_queue = new Queue;
        devices = new ToyDevice[kDevices];
    }
    DeviceAllocator* allocator = nullptr;
    return host->create_allocator ? host->create_allocator(last_device, &driver, &allocator)
                                  : BackendStatus::Ok;
}
BackendStatus device_count(int32_t* count) {
    *count = kDevices;
    return BackendStatus::Ok;
}

BackendStatus properties(int32_t index, DeviceProperties* found) {
    found->total_memory = kMemory;
    found->multiprocessors = 1;
    std::snprintf(found->name, sizeof found->name, "Toy %d", index);
    return BackendStatus::Ok;
}
BackendStatus memory_info(int32_t index, uint64_t* free, uint64_t* total) {
    std::lock_guard lock(queue().mutex);
    *total = kMemory;
    *free = kMemory - (index == last_device ? mapped.load() : device(index).used);
    return BackendStatus::Ok;
}

const Backend backend = {
    .struct_size = sizeof(Backend),
    .abi = kBackendAbi,
    .name = "toy",
    .type = DeviceType::Plugin,
    .memory_formats = kTakesChannelsLast | kTakesChannelsLast3d,
    .probe = probe,
    .init = init,
    .device_count = device_count,
    .allocate = allocate,
    .release = release,
    .record_use = record_use,
    .copy = copy,
    .synchronize_device = synchronize_device,
    .synchronize_stream = synchronize_stream,
    .kernel = kernel,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .elapsed_time = elapsed_time,
    .pin = pin,
    .unpin = unpin,
    .begin_capture = begin_capture,
    .end_capture = end_capture,
    .replay = replay,
    .destroy_graph = destroy_graph,
    .properties = properties,
    .memory_info = memory_info,
};

}  // namespace

extern "C" RL_API const rushlight::Backend* rushlight_backend() { return &backend; }
