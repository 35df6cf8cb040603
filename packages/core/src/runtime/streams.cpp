// Streams, events and graphs of devices.
#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/attached.h"
#include "rushlight/graphs.h"
#include "rushlight/streams.h"

namespace rushlight {

using namespace detail;

namespace {

// The number of streams for each device. Streams are reused in turn and never destroyed, so the streams to which blocks
// of memory refer stay valid.
constexpr size_t kPooledStreams = 32;

struct StreamPool {
    std::vector<void*> streams;
    size_t next = 0;
};

std::mutex pools_mutex;
std::map<std::tuple<DeviceType, int8_t, int>, StreamPool> pools;  // by device and priority
std::map<std::pair<DeviceType, void*>, int8_t> owners;            // the device of every stream

}  // namespace

bool has_streams(Device device) {
    const Backend* b = backend_of(device.type);
    return b && b->create_stream;
}

void* new_stream(Device device, int priority) {
    device = resolve(device);
    const Attached& owner = require_attached(device.type);
    auto create = require_function(owner.backend, owner.backend.create_stream, "streams");
    {
        std::lock_guard lock(pools_mutex);
        StreamPool& pool = pools[{device.type, device.index, priority}];
        if (pool.streams.size() >= kPooledStreams) return pool.streams[pool.next++ % kPooledStreams];
    }
    void* stream = nullptr;
    check_backend(create(device.index, priority, &stream), owner.backend, "creating a stream");
    std::lock_guard lock(pools_mutex);
    pools[{device.type, device.index, priority}].streams.push_back(stream);
    owners[{device.type, stream}] = device.index;
    return stream;
}

void stream_priorities(Device device, int& least, int& greatest) {
    device = resolve(device);
    const Backend& b = require_attached(device.type).backend;
    require_function(b, b.stream_priorities, "function for the priorities of streams");
    int32_t low = 0, high = 0;
    check_backend(b.stream_priorities(device.index, &low, &high), b, "querying priorities");
    least = low;
    greatest = high;
}

void check_stream(const char* what, Device device, void* stream) {
    if (!stream) return;
    std::lock_guard lock(pools_mutex);
    auto found = owners.find({device.type, stream});
    RL_CHECK(found == owners.end() || found->second == device.index, throw_value,
             "%s: needs a stream of %s, got one of %s", what, name(device).c_str(),
             name(Device{device.type, found->second}).c_str());
}

void synchronize_stream(Device device, void* stream) {
    refuse_in_capture("synchronize", device, stream);
    const Attached& owner = require_attached(device.type);
    check_backend(owner.backend.synchronize_stream(device.index, stream), owner.backend, "synchronising");
}

bool query_stream(Device device, void* stream) {
    refuse_in_capture("query", device, stream);
    Event event(device.type);
    event.record(device, stream);
    return event.query();
}

void order_streams(Device before, void* first, Device after, void* second) {
    if (before == after && first == second) return;
    const Attached& owner = require_attached(before.type);
    if (before.type != after.type || !owner.backend.create_event) return synchronize_stream(before, first);
    Event event(before.type);
    event.record(before, first);
    event.wait(after, second);
}

Event::Event(DeviceType type, int32_t flags) : device_{type, -1}, flags_(flags) {
    require_function(backend(), backend().create_event, "events");
    if (flags & kTimedEvent) require_function(backend(), backend().elapsed_time, "events with timing");
}

Event::~Event() {
    if (event_ && attached_or_null(device_.type)) backend().destroy_event(device_.index, event_);
}

// Raises an error in a forked child, which cannot use the devices of its parent.
const Backend& Event::backend() const { return require_attached(device_.type).backend; }

void Event::record(Device device, void* stream) {
    RL_CHECK(device.type == device_.type && (!event_ || device == device_), throw_value,
             "Event.record(stream): an event of %s needs a stream of %s, got one of %s",
             name(device_).c_str(), name(device_).c_str(), name(device).c_str());
    check_stream("Event.record(stream)", device, stream);
    const Backend& b = backend();
    if (!event_) {
        check_backend(b.create_event(device.index, flags_, &event_), b, "creating an event");
        device_ = device;
    }
    check_backend(b.record_event(device_.index, event_, stream), b, "recording an event");
    capture_ = capture_of(device_, stream);
}

void Event::wait(Device device, void* stream) const {
    RL_CHECK(device.type == device_.type, throw_value,
             "wait: an event of device %s cannot be used with a stream of device %s", name(device_).c_str(),
             name(device).c_str());
    if (!event_) return;
    const Backend& b = backend();
    if (capture_) join_capture(capture_, device, stream);
    check_backend(b.wait_event(device.index, event_, stream), b, "waiting for an event");
}

bool Event::query() const {
    if (!event_) return true;
    const Backend& b = backend();
    check_not_captured("query");
    int32_t reached = 0;
    check_backend(b.query_event(device_.index, event_, &reached), b, "querying an event");
    return reached != 0;
}

void Event::check_not_captured(const char* what) const {
    RL_CHECK(!capture_, throw_runtime,
             "%s: the event was recorded during the capture of a graph and belongs to that graph", what);
}

void Event::synchronize() const {
    if (!event_) return;
    const Backend& b = backend();
    check_not_captured("synchronize");
    check_backend(b.synchronize_event(device_.index, event_), b, "synchronising");
}

double Event::elapsed_ms(const Event& end) const {
    for (const Event* e : {this, &end}) {
        RL_CHECK(e->flags_ & kTimedEvent, throw_value,
                 "elapsed_time: both events must be made with enable_timing=True");
        RL_CHECK(e->event_, throw_value, "elapsed_time: both events must be recorded");
        RL_CHECK(e->query(), throw_runtime,
                 "elapsed_time: an event has not completed yet\nhint: call synchronize() on the event first");
    }
    RL_CHECK(device_ == end.device_, throw_value,
             "elapsed_time: both events must be of one device, got %s and %s", name(device_).c_str(),
             name(end.device_).c_str());
    double ms = 0;
    check_backend(backend().elapsed_time(device_.index, event_, end.event_, &ms), backend(),
                  "measuring time between events");
    return ms;
}

}  // namespace rushlight
