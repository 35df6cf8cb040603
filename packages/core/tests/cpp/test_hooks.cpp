// sources: src/runtime/hooks.cpp src/tensor/storage.cpp src/tensor/device.cpp src/runtime/error.cpp
// sources: src/runtime/cpu_allocator.cpp src/runtime/caching_allocator.cpp src/runtime/site.cpp src/runtime/small_blocks.cpp
// sources: src/runtime/pages.cpp src/runtime/limits.cpp

// Calls of an observer: the beginning and the end of each node, and the memory of storages.
#include "rushlight/hooks.h"

#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/backend.h"
#include "rushlight/storage.h"
#include "rushlight/tracing.h"

using namespace rushlight;

// This test uses only the CPU.
void* rushlight::backend_allocate(Device, size_t, ReleaseFn*, void**) { throw_runtime("no device"); }
void rushlight::backend_copy_bytes(CopyKind, Device, void*, const void*, size_t) {
    throw_runtime("no device");
}
std::atomic<bool> rushlight::detail::several_streams{false};
void rushlight::detail::record_current_use_slow(const Storage&) { throw_runtime("no device"); }

namespace {

std::vector<std::string> told;
std::map<const void*, size_t> blocks;

void made(uint64_t n) { told.push_back("made " + std::to_string(n)); }
void begin(const char* name, uint64_t n) {
    told.push_back("begin " + std::string(name) + " " + std::to_string(n));
}
void end(uint64_t n) { told.push_back("end " + std::to_string(n)); }
void allocated(const void* data, size_t nbytes, Device) { blocks[data] = nbytes; }
void released(const void* data, size_t nbytes, Device) {
    CHECK_EQUAL(blocks[data], nbytes);
    blocks.erase(data);
}

const Observer everything{made, begin, end, allocated, released};
const Observer nothing{};

struct Watch {
    explicit Watch(const Observer& observer) { set_observer(&observer); }
    ~Watch() {
        set_observer(nullptr);
        told.clear();
        blocks.clear();
    }
};

}  // namespace

TEST(nodes_are_reported) {
    Watch watch(everything);
    report_node(7);
    {
        NodeScope scope(7, [] { return std::string("AddBackward"); });
    }
    CHECK((told == std::vector<std::string>{"made 7", "begin AddBackward 7", "end 7"}));
}

TEST(a_node_that_began_is_ended) {
    Watch watch(everything);
    {
        NodeScope scope(3, [] { return std::string("Mul"); });
        CHECK(set_observer(nullptr) == &everything);
    }
    CHECK((told == std::vector<std::string>{"begin Mul 3", "end 3"}));
    CHECK(set_observer(&everything) == nullptr);
}

TEST(no_name_is_made_for_nobody) {
    bool asked = false;
    auto name = [&] {
        asked = true;
        return std::string("Mul");
    };
    { NodeScope scope(1, name); }
    Watch watch(nothing);
    { NodeScope scope(2, name); }
    report_node(3);
    CHECK(!asked && told.empty());
}

TEST(memory_of_storages_is_reported) {
    Watch watch(everything);
    {
        Ref<Storage> first = Storage::allocate(100, {});
        Ref<Storage> second = Storage::allocate(1 << 20, {});
        CHECK_EQUAL(blocks.size(), 2u);
        CHECK_EQUAL(blocks[first->data()], 100u);
        first->resize("test", 5000);
        CHECK_EQUAL(blocks.size(), 2u);
        CHECK_EQUAL(blocks[first->data()], 5000u);
    }
    CHECK(blocks.empty());
}

TEST(empty_meta_and_foreign_storages_are_not) {
    Watch watch(everything);
    char memory[8];
    Ref<Storage> empty = Storage::allocate(0, {});
    Ref<Storage> meta = Storage::allocate(64, {DeviceType::Meta, 0});
    Ref<Storage> foreign = Storage::wrap(memory, 8, {}, StorageKind::Foreign, nullptr, nullptr);
    CHECK(blocks.empty());
}

TEST(an_observer_of_nodes_hears_no_memory) {
    static const Observer nodes{made, begin, end, nullptr, nullptr};
    Watch watch(nodes);
    Ref<Storage> storage = Storage::allocate(64, {});
    CHECK(blocks.empty());
}

TEST(a_tracer_hears_of_memory_beside_an_observer) {
    static std::vector<const void*> seen;
    static const TracerFunctions functions{nullptr, [](const void* data) { seen.push_back(data); },
                                           [](const void* data) { std::erase(seen, data); }};
    set_tracer_functions(&functions);
    Ref<Storage> unseen = Storage::allocate(64, {});
    set_tracer_watches_memory(true);
    {
        Ref<Storage> first = Storage::allocate(64, {});
        CHECK((seen == std::vector<const void*>{first->data()}));
        Watch watch(everything);
        Ref<Storage> second = Storage::allocate(64, {});
        CHECK_EQUAL(seen.size(), 2u);
        CHECK_EQUAL(blocks.size(), 1u);
    }
    CHECK(seen.empty());
    set_tracer_watches_memory(false);
    Ref<Storage> after = Storage::allocate(64, {});
    CHECK(seen.empty());
    set_tracer_functions(nullptr);
}
