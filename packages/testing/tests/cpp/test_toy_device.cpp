// Tests the toy device through the backend interface. Prints the first violation and exits with 1.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "rushlight/backend.h"

using namespace rushlight;

static std::string last_error;
static const HostTable host = [] {
    HostTable table{};
    table.struct_size = sizeof table;
    table.abi = kBackendAbi;
    table.set_error = [](const char* text) { last_error = text; };
    table.last_error = [] { return last_error.c_str(); };
    table.log = [](LogLevel, const char*) {};
    table.interrupted = []() -> int32_t { return 0; };
    table.describe = [](const DeviceCall* call, char* text, size_t size) {
        std::snprintf(text, size, "%s", call->op);
    };
    // Two operators have kernels: "seven" writes 7, and "fails" fails.
    table.cpu_kernel = [](const char* name, uint64_t, KernelPart, const void** kernel) {
        *kernel = std::strcmp(name, "seven") == 0 || std::strcmp(name, "fails") == 0 ? name : nullptr;
        return BackendStatus::Ok;
    };
    table.run_cpu_kernel = [](const void* kernel, const KernelArgs* args, PhiloxKey) {
        if (*static_cast<const char*>(kernel) == 'f') {
            last_error = "index 9 is out of range";
            return BackendStatus::Index;
        }
        *args->out(0).as<float>() = 7;
        return BackendStatus::Ok;
    };
    return table;
}();

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)
#define OK(call) CHECK((call) == BackendStatus::Ok)

static const Backend* toy;

static BackendStatus copy_bytes(CopyKind kind, void* target, const void* source, size_t nbytes,
                                void* stream) {
    const DeviceCopy copy{sizeof(DeviceCopy),
                          kind,
                          kind == CopyKind::HostToDevice ? CopyUntil::SourceRead : CopyUntil::Done,
                          0,
                          0,
                          target,
                          source,
                          nbytes,
                          stream};
    return toy->copy(&copy);
}

/// A device array of floats with a shape.
struct Array {
    Array(std::vector<int64_t> sizes, void* stream = nullptr, DType dtype = DType::Float32)
        : sizes(std::move(sizes)), dtype(dtype) {
        strides.assign(this->sizes.size(), 1);
        for (size_t d = this->sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * this->sizes[d];
        numel = std::accumulate(this->sizes.begin(), this->sizes.end(), int64_t{1}, std::multiplies<>());
        OK(toy->allocate(0, nbytes(), stream, &data));
    }
    size_t nbytes() const { return static_cast<size_t>(numel) * itemsize(dtype); }
    View view() const {
        return {data, sizes.data(), strides.data(), numel, static_cast<int32_t>(sizes.size()), dtype, 1};
    }
    void fill(const void* host_data, void* stream = nullptr) {
        OK(copy_bytes(CopyKind::HostToDevice, data, host_data, nbytes(), stream));
    }
    std::vector<float> read(void* stream = nullptr) const {
        std::vector<float> values(static_cast<size_t>(numel));
        OK(copy_bytes(CopyKind::DeviceToHost, values.data(), data, nbytes(), stream));
        return values;
    }

    std::vector<int64_t> sizes, strides;
    DType dtype;
    int64_t numel = 0;
    void* data = nullptr;
};

static void run(const char* name, std::vector<View> views, std::vector<Param> params = {},
                void* stream = nullptr) {
    BackendKernel kernel = nullptr;
    OK(toy->kernel(name, 0, KernelPart::Run, &kernel));
    CHECK(kernel != nullptr);
    const DeviceCall call{sizeof(DeviceCall), 0, stream, nullptr, name, 0};
    KernelContext context{nullptr, {0, 0}, nullptr, nullptr, &call};
    KernelArgs args{sizeof(KernelArgs),
                    1,
                    static_cast<uint16_t>(views.size() - 1),
                    static_cast<uint16_t>(params.size()),
                    DType::Float32,
                    DType::Float32,
                    views.data(),
                    params.data(),
                    &context};
    OK(kernel(&args));
}

static Param number(double value) {
    Param p{Param::Kind::Float, 0, {}};
    p.floating = value;
    return p;
}
static void kernels_compute() {
    Array a({2, 3}), b({3}), out({2, 3}), total({1, 1}), rows({2, 1}), columns({1, 3});
    const float six[] = {1, 2, 3, 4, 5, 6}, three[] = {10, 20, 30};
    a.fill(six);
    b.fill(three);
    View wide = b.view();  // broadcast along the first dimension
    const int64_t strides[] = {0, 1};
    wide.sizes = a.sizes.data();
    wide.strides = strides;
    wide.numel = 6;
    wide.ndim = 2;
    run("add", {out.view(), a.view(), wide}, {number(2)});
    CHECK((out.read() == std::vector<float>{21, 42, 63, 24, 45, 66}));
    View absent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
    run("add", {out.view(), a.view(), absent}, {number(0.5), number(1)});
    CHECK((out.read() == std::vector<float>{1.5, 2.5, 3.5, 4.5, 5.5, 6.5}));
    run("mul", {out.view(), a.view(), wide});
    CHECK((out.read() == std::vector<float>{10, 40, 90, 40, 100, 180}));
    run("sum", {total.view(), a.view()});
    CHECK(total.read()[0] == 21);
    run("sum", {rows.view(), a.view()});
    CHECK((rows.read() == std::vector<float>{6, 15}));
    run("sum", {columns.view(), a.view()});
    CHECK((columns.read() == std::vector<float>{5, 7, 9}));

    Array transposed({3, 2}), whole({2, 3}, nullptr, DType::Int64);
    View turned = a.view();
    const int64_t turned_sizes[] = {3, 2}, turned_strides[] = {1, 3};
    turned.sizes = turned_sizes;
    turned.strides = turned_strides;
    run("copy", {transposed.view(), turned});
    CHECK((transposed.read() == std::vector<float>{1, 4, 2, 5, 3, 6}));
    run("add", {out.view(), a.view(), absent}, {number(0.5), number(1)});
    run("copy", {whole.view(), out.view()});  // converts
    int64_t integers[6];
    OK(copy_bytes(CopyKind::DeviceToHost, integers, whole.data, sizeof integers, nullptr));
    CHECK(integers[0] == 1 && integers[5] == 6);
    for (Array* array : {&a, &b, &out, &total, &rows, &columns, &transposed, &whole})
        OK(toy->release(0, array->data, array->nbytes()));
}

static void work_is_late() {
    Array a({4});
    const float ones[] = {1, 1, 1, 1};
    a.fill(ones);
    run("add", {a.view(), a.view(), a.view()}, {number(1)});
    float early;
    std::memcpy(&early, a.data, sizeof early);  // no work has run, so reading now gives arbitrary bytes
    CHECK(early != 1 && early != 2);
    OK(toy->synchronize_device(0));
    std::memcpy(&early, a.data, sizeof early);
    CHECK(early == 2);
    OK(toy->release(0, a.data, a.nbytes()));
}

static void the_host_may_reuse_what_it_gave() {
    Array a({2});
    float values[] = {3, 4};
    a.fill(values);
    values[0] = values[1] = -1;
    CHECK((a.read() == std::vector<float>{3, 4}));
    OK(toy->release(0, a.data, a.nbytes()));
}

static void released_memory_lives_until_its_work_is_done() {
    Array a({1000}), sum({1});
    std::vector<float> ones(1000, 1);
    a.fill(ones.data());
    run("sum", {sum.view(), a.view()});
    OK(toy->release(0, a.data, a.nbytes()));  // before the sum has run
    CHECK(sum.read()[0] == 1000);
    CHECK(toy->release(0, a.data, a.nbytes()) == BackendStatus::Runtime);  // a second release fails
    OK(toy->release(0, sum.data, sum.nbytes()));
}

static void events_order_streams() {
    void *first, *second, *event;
    OK(toy->create_stream(0, 0, &first));
    OK(toy->create_stream(0, 0, &second));
    OK(toy->create_event(0, 0, &event));
    int32_t reached = 0;
    OK(toy->query_event(0, event, &reached));
    CHECK(reached == 1);
    Array a({1}, first), b({1}, second);
    const float one[] = {1};
    a.fill(one, first);
    OK(toy->record_event(0, event, first));
    OK(toy->query_event(0, event, &reached));
    CHECK(reached == 0);
    OK(toy->wait_event(0, event, second));
    run("add", {b.view(), a.view(), a.view()}, {number(1)}, second);
    OK(toy->record_use(0, a.data, second));
    OK(toy->release(0, a.data, a.nbytes()));
    CHECK(b.read(second)[0] == 2);
    OK(toy->synchronize_event(0, event));
    OK(toy->query_event(0, event, &reached));
    CHECK(reached == 1);
    OK(toy->release(0, b.data, b.nbytes()));
    OK(toy->destroy_event(0, event));
    OK(toy->destroy_stream(0, first));
    OK(toy->destroy_stream(0, second));
}

static void without_an_event_streams_race_and_lose() {
    void* other;
    OK(toy->create_stream(0, 0, &other));
    Array a({1}), b({1}, other);
    const float one[] = {1};
    a.fill(one);
    run("add", {b.view(), a.view(), a.view()}, {number(1)}, other);
    CHECK(b.read(other)[0] != 2);  // the fill has not run: the error is found in every run
    OK(toy->synchronize_device(0));
    OK(toy->release(0, a.data, a.nbytes()));
    OK(toy->release(0, b.data, b.nbytes()));
}

static void memory_ends() {
    void* data = nullptr;
    CHECK(toy->allocate(1, size_t{65} << 20, nullptr, &data) == BackendStatus::OutOfMemory);
    CHECK(last_error.find("toy:1") != std::string::npos);
    CHECK(toy->allocate(1, SIZE_MAX, nullptr, &data) == BackendStatus::OutOfMemory);
    for (int i = 0; i < 8; ++i) {  // queued releases make room
        OK(toy->allocate(1, size_t{40} << 20, nullptr, &data));
        OK(toy->release(1, data, size_t{40} << 20));
    }
}

static void other_operators_are_the_hosts() {
    BackendKernel kernel = nullptr;
    OK(toy->kernel("conv2d", 0, KernelPart::Run, &kernel));
    CHECK(kernel == nullptr);
    Array a({1});
    run("seven", {a.view()});
    float early;
    std::memcpy(&early, a.data, sizeof early);
    CHECK(early != 7);
    CHECK(a.read()[0] == 7);
    run("fails", {a.view()});  // fails when it runs, not when it is queued
    run("seven", {a.view()});
    CHECK(toy->synchronize_device(0) == BackendStatus::Index);
    CHECK(last_error == "queued by fails: index 9 is out of range");
    OK(toy->synchronize_device(0));  // the error is reported once
    CHECK(a.read()[0] == 7);
    for (int i = 0; i < 2; ++i) run("fails", {a.view()});
    OK(toy->synchronize_device(1));  // another device
    CHECK(toy->synchronize_stream(0, nullptr) == BackendStatus::Index);
    CHECK(last_error ==
          "queued by fails: index 9 is out of range\nalso queued by fails: index 9 is out of range");
    OK(toy->synchronize_device(0));
    OK(toy->release(0, a.data, a.nbytes()));
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    auto entry = reinterpret_cast<BackendEntry>(dlsym(library, kBackendEntry));
    CHECK(entry != nullptr);
    toy = entry();
    OK(toy->probe(&host));
    OK(toy->init(&host));
    int32_t count = 0;
    OK(toy->device_count(&count));
    CHECK(count == 2);
    kernels_compute();
    work_is_late();
    the_host_may_reuse_what_it_gave();
    released_memory_lives_until_its_work_is_done();
    events_order_streams();
    without_an_event_streams_race_and_lose();
    memory_ends();
    other_operators_are_the_hosts();
    std::puts("ok");
}
