#include "rushlight/graphs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/attached.h"
#include "runtime/caching_allocator.h"
#include "rushlight/streams.h"

namespace rushlight {

using namespace detail;

namespace detail {
std::atomic<int> captures{0};
}

/// The captures that are under way, and the number of graphs that use each pool.
struct Captures {
    struct One {
        DeviceGraph* graph;  // removes itself from the list before it is destroyed
        uint64_t id;
        std::vector<void*> streams;
    };
    std::mutex mutex;
    std::vector<One> list;
    std::map<std::tuple<DeviceType, int8_t, uint64_t>, int> users;
    uint64_t last_pool = 0, last_id = 0;

    static Captures& get() {
        static auto* instance = new Captures;  // never destroyed: graphs may outlive main()
        return *instance;
    }
    One* find(Device device, void* stream) {
        for (One& one : list)
            if (one.graph->device_ == device && std::ranges::count(one.streams, stream)) return &one;
        return nullptr;
    }
    One* find(uint64_t pool) {
        for (One& one : list)
            if (one.graph->pool_ == pool) return &one;
        return nullptr;
    }
    static void keep(DeviceGraph& graph, Ref<Storage> storage) {
        auto& kept = graph.kept_;
        // Most storages are reported several times in succession, so the search begins with the storage that was added
        // last.
        if (std::find(kept.rbegin(), kept.rend(), storage) == kept.rend()) kept.push_back(std::move(storage));
    }
    static const PhiloxKey& at_begin(const DeviceGraph& graph) { return graph.at_begin_; }
    static Ref<Storage>& key(DeviceGraph& graph) { return graph.key_; }
    /// Records that the graph uses the random numbers of the default generator up to the state `now`.
    static void count_draws(DeviceGraph& graph, const PhiloxKey& now) {
        const PhiloxKey& begin = graph.at_begin_;
        if (now.seed == begin.seed && now.offset > begin.offset)
            graph.draws_ = std::max(graph.draws_, now.offset - begin.offset);
    }
};

namespace {

PhiloxKey state_of(Generator& generator) { return generator.reserve(0); }

const Attached& with_graphs(Device device) {
    const Attached& owner = require_attached(device.type);
    require_function(owner.backend, owner.backend.begin_capture, "graphs");
    return owner;
}

}  // namespace

uint64_t new_graph_pool() {
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    return ++all.last_pool;
}

bool is_capturing(Device device, void* stream) {
    return captures.load(std::memory_order_relaxed) && capture_of(device, stream) != 0;
}

namespace detail {

uint64_t capture_of(Device device, void* stream) {
    if (!captures.load(std::memory_order_relaxed)) return 0;
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    Captures::One* one = all.find(device, stream);
    return one ? one->id : 0;
}

void refuse_in_capture_slow(const char* what, Device device, void* stream) {
    RL_CHECK(!capture_of(device, stream), throw_runtime,
             "%s: cannot be recorded in a graph, because it waits for %s\n"
             "hint: call it before the capture, or after a replay",
             what, name(device).c_str());
}

void refuse_in_capture(const char* what, Device device) {
    if (!captures.load(std::memory_order_relaxed)) return;
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    for (const auto& one : all.list)
        RL_CHECK(one.graph->device() != device, throw_runtime,
                 "%s: cannot wait for device %s while a graph is being recorded on this device", what,
                 name(device).c_str());
}

void keep_in_capture(const Storage& storage, Device device, void* stream) {
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    Captures::One* one = all.find(device, stream);
    if (!one || memory_pool_of(storage) == one->graph->pool()) return;
    Captures::keep(*one->graph, Ref<Storage>::share(const_cast<Storage*>(&storage)));
}

void move_key_to_device(const char* op, Device device, DeviceCall& call, PhiloxKey& key) {
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    Captures::One* one = all.find(device, call.stream);
    if (!one) return;
    const PhiloxKey& begin = Captures::at_begin(*one->graph);
    const auto is_zero = [](const PhiloxKey& k) { return k.seed == 0 && k.offset == 0; };
    if (is_zero(key) && !is_zero(begin)) return;  // the operator draws no random numbers
    RL_CHECK(key.seed == begin.seed && key.offset >= begin.offset, throw_not_implemented,
             "%s: a graph can record random numbers only from the default generator, and only if it was "
             "seeded before the capture",
             op);
    key.offset -= begin.offset;
    call.random_base = static_cast<const PhiloxKey*>(Captures::key(*one->graph)->data());
}

// Raises RuntimeError if a graph is being recorded and the new state of the default generator does not belong to the
// sequence that the graph continues.
static void refuse_reseeding_in_capture(const char* what, PhiloxKey now, const PhiloxKey* next) {
    if (!captures.load(std::memory_order_relaxed)) return;
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    for (const auto& one : all.list) {
        const PhiloxKey& begin = Captures::at_begin(*one.graph);
        RL_CHECK(
            next && next->seed == begin.seed && next->offset >= begin.offset, throw_runtime,
            "%s: the default generator cannot be seeded while a graph is being recorded, because every replay "
            "continues the generator's sequence of random numbers\n"
            "hint: seed the generator before the capture, or between the replays",
            what);
    }
    // The generator may return to an earlier state of the capture. The numbers after this state have been drawn
    // nevertheless.
    for (const auto& one : all.list) Captures::count_draws(*one.graph, now);
}

void join_capture(uint64_t id, Device device, void* stream) {
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    Captures::One* one = nullptr;
    for (auto& each : all.list)
        if (each.id == id) one = &each;
    if (!one || std::ranges::count(one->streams, stream)) return;
    RL_CHECK(one->graph->device() == device, throw_not_implemented,
             "wait: a graph of device %s cannot record operators of device %s",
             name(one->graph->device()).c_str(), name(device).c_str());
    one->streams.push_back(stream);
    graph_memory(device).begin_capture(one->graph->pool(), reinterpret_cast<StreamId>(stream));
}

}  // namespace detail

Ref<DeviceGraph> DeviceGraph::make(Device device) {
    device = resolve(device);
    with_graphs(device);
    graph_memory(device);
    return Ref<DeviceGraph>::adopt(new DeviceGraph(device));
}

void DeviceGraph::destroy(DeviceGraph* graph) {
    if (attached_or_null(graph->device_.type)) graph->abandon();
    delete graph;
}

void DeviceGraph::begin(void* stream, uint64_t pool) {
    RL_CHECK(state_ == State::Empty, throw_runtime,
             "capture_begin: the graph has already recorded operators\n"
             "hint: call reset() on the graph, or create another graph");
    RL_CHECK(stream, throw_runtime,
             "capture_begin: the default stream cannot be captured\n"
             "hint: make another stream current, as the context manager cuda.graph does");
    const Attached& owner = with_graphs(device_);
    check_stream("capture_begin", device_, stream);
    // Allocated before the capture, so that it does not belong to a pool of graphs.
    if (!key_) key_ = Storage::allocate(sizeof(PhiloxKey), device_);
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    RL_CHECK(!all.find(device_, stream), throw_runtime,
             "capture_begin: another graph is recording this stream");
    if (pool == 0) pool = ++all.last_pool;
    RL_CHECK(pool <= all.last_pool, throw_value, "capture_begin(pool): there is no such pool");
    RL_CHECK(!all.find(pool), throw_runtime,
             "capture_begin(pool): another graph that uses this pool is being recorded");
    all.list.reserve(all.list.size() + 1);
    Captures::One one{this, ++all.last_id, {stream}};
    check_backend(owner.backend.begin_capture(device_.index, stream), owner.backend, "beginning a capture");
    all.list.push_back(std::move(one));
    graph_memory(device_).begin_capture(pool, reinterpret_cast<StreamId>(stream));
    ++all.users[{device_.type, device_.index, pool}];
    pool_ = pool;
    stream_ = stream;
    at_begin_ = state_of(default_generator());
    draws_ = 0;
    state_ = State::Capturing;
    several_streams.store(true, std::memory_order_relaxed);
    captures.fetch_add(1, std::memory_order_relaxed);
    reseeding_check.store(refuse_reseeding_in_capture, std::memory_order_relaxed);
}

/// Ends the capture and removes it from the list of captures. Afterwards the backend's graph is either complete or
/// null.
void DeviceGraph::finish_capture() {
    const PhiloxKey now = state_of(default_generator());
    Captures& all = Captures::get();
    std::lock_guard lock(all.mutex);
    Captures::count_draws(*this, now);
    graph_memory(device_).end_capture(pool_);
    std::erase_if(all.list, [this](const Captures::One& one) { return one.graph == this; });
    captures.fetch_sub(1, std::memory_order_relaxed);
    state_ = State::Ready;
}

void DeviceGraph::end() {
    RL_CHECK(state_ == State::Capturing, throw_runtime,
             "capture_end: this graph is not being captured\nhint: call capture_begin() first");
    const Backend& b = require_attached(device_.type).backend;
    const BackendStatus status = b.end_capture(device_.index, stream_, &graph_);
    std::string text = status == BackendStatus::Ok ? std::string() : backend_error;
    finish_capture();
    if (status == BackendStatus::Ok) return;
    reset();
    backend_error = std::move(text);
    check_backend(status, b, "ending a capture");
}

void DeviceGraph::abandon() noexcept {
    try {
        if (state_ == State::Capturing) end();
        reset();
    } catch (const Error&) {
        // The next call of the device reports its state.
    }
}

/// Copies a random key to the device. Does not wait for the copy if the backend can pin memory.
void DeviceGraph::write_key(PhiloxKey key, void* stream) {
    const Backend& b = require_attached(device_.type).backend;
    const Ref<Storage> pinned = b.pin ? allocate_pinned(sizeof key, device_.type) : nullptr;
    if (pinned) std::memcpy(pinned->data(), &key, sizeof key);
    const DeviceCopy copy{.struct_size = sizeof(DeviceCopy),
                          .kind = CopyKind::HostToDevice,
                          .until = pinned ? CopyUntil::Queued : CopyUntil::SourceRead,
                          .target_device = device_.index,
                          .source_device = 0,
                          .target = key_->data(),
                          .source = pinned ? pinned->data() : &key,
                          .nbytes = sizeof key,
                          .stream = stream};
    check_backend(b.copy(&copy), b, "copying a random key");
    if (pinned) record_pinned_copy(*pinned, device_, stream);
}

void DeviceGraph::replay() {
    RL_CHECK(
        state_ == State::Ready, throw_runtime,
        "replay: nothing has been recorded in this graph\nhint: record operators between capture_begin() and capture_end() first");
    const Backend& b = require_attached(device_.type).backend;
    void* stream = current_stream(device_);
    refuse_in_capture("replay", device_, stream);
    if (draws_ > 0) write_key(default_generator().reserve(draws_), stream);
    check_backend(b.replay(device_.index, graph_, stream), b, "replaying a graph");
    if (!std::ranges::count(replayed_on_, stream)) replayed_on_.push_back(stream);
}

void DeviceGraph::reset() {
    RL_CHECK(state_ != State::Capturing, throw_runtime,
             "reset: this graph is being captured\nhint: call capture_end() first");
    if (state_ == State::Empty) return;
    state_ = State::Empty;
    const Backend& b = require_attached(device_.type).backend;
    // Replays may still be queued. The memory that they use is reused only after they have run.
    for (const auto& storage : kept_)
        for (void* stream : replayed_on_) record_stream_use(*storage, stream);
    for (void* stream : replayed_on_) record_stream_use(*key_, stream);
    kept_.clear();
    replayed_on_.clear();
    key_.reset();
    {
        Captures& all = Captures::get();
        std::lock_guard lock(all.mutex);
        if (auto found = all.users.find({device_.type, device_.index, pool_}); --found->second == 0) {
            all.users.erase(found);
            graph_memory(device_).retire(pool_);
        }
    }
    pool_ = 0;
    if (void* graph = std::exchange(graph_, nullptr))
        check_backend(b.destroy_graph(device_.index, graph), b, "destroying a graph");
}

uint64_t DeviceGraph::pool() const {
    RL_CHECK(
        pool_, throw_runtime,
        "pool: nothing has been recorded in this graph\nhint: record operators between capture_begin() and capture_end() first");
    return pool_;
}

void* DeviceGraph::handle() const {
    RL_CHECK(
        graph_, throw_runtime,
        "raw_cuda_graph_exec: nothing has been recorded in this graph\nhint: record operators between capture_begin() and capture_end() first");
    return graph_;
}

}  // namespace rushlight
