// cuDNN's graphs of one convolution, for tests: operations are checked as the library checks them, and computed by plain
// loops from their descriptors on the streams of the fake driver. The library offers several engines, which differ in their
// numerical notes, workspaces and speed. Environment: FAKE_CUDNN_VERSION (91900), FAKE_CUDNN_CUDART (13000).
#include <cudnn_graph.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ops/cast_element.h"

#define EXPORT extern "C" [[gnu::visibility("default")]]

struct cudnnContext {
    cudaStream_t stream = nullptr;
    std::atomic<bool> busy = false;
};

namespace {

using rushlight::BFloat16;
using rushlight::Half;

struct Descriptor;
/// The value of an attribute. Descriptors are kept alive by those that refer to them.
struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
    std::vector<std::shared_ptr<const Descriptor>> descriptors;
};
struct Descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized = false;
    std::map<int, Attribute> attributes;
    int engine = -1;  // of an engine, a configuration, or a plan
    mutable std::atomic<bool> busy = false;

    bool has(int name) const { return attributes.contains(name); }
    template <class T>
    T number(int name) const {
        T value;
        std::memcpy(&value, attributes.at(name).bytes.data(), sizeof value);
        return value;
    }
    std::vector<int64_t> numbers(int name) const {
        const Attribute& a = attributes.at(name);
        std::vector<int64_t> values(static_cast<size_t>(a.count));
        std::memcpy(values.data(), a.bytes.data(), a.bytes.size());
        return values;
    }
    const Descriptor& at(int name) const { return *attributes.at(name).descriptors.at(0); }
};

struct Engine {
    std::vector<cudnnBackendNumericalNote_t> notes;
    int64_t workspace;
    bool has_plan = true, runs = true;
    std::atomic<int> delay = 0;  // in milliseconds
};
/// The engines in the order in which the library recommends them. The last one is also the fallback.
Engine engines[] = {
    {{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, 0},
    {{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, 0},
    {{}, int64_t{1} << 40},
    {{}, 0, false},
    {{}, 0, true, false},
    {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096},
    {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 1024},
    {{}, 512},
};
constexpr int kEngines = std::size(engines), kTensorCore = 5;

std::atomic<int> last_engine = -1, executions = 0, plans = 0, live = 0, next_status = 0, handles = 0;
std::atomic<unsigned> refused = 0;  // data types, as bits
std::atomic<int64_t> last_alignment = 0;
std::atomic<bool> last_channels_last = false;
thread_local std::string error_text;

cudnnStatus_t refuse(cudnnStatus_t status, const char* why) {
    error_text = why;
    return status;
}

size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
        case CUDNN_TYPE_CHAR: return 1;
        default: return 4;
    }
}

std::shared_ptr<Descriptor>& of(cudnnBackendDescriptor_t d) {
    return *static_cast<std::shared_ptr<Descriptor>*>(d);
}

// --- Checks ---------------------------------------------------------------------------------------------------------

struct Expected {
    int name;
    cudnnBackendAttributeType_t type;
};

std::vector<Expected> expected_of(const Descriptor& d) {
    const auto operation = [](int first, cudnnBackendAttributeType_t scale) {
        std::vector<Expected> all = {{first, scale}, {first + 1, scale}};
        for (int i = 2; i < 6; ++i) all.push_back({first + i, CUDNN_TYPE_BACKEND_DESCRIPTOR});
        return all;
    };
    switch (d.type) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
            return {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
                    {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64}};
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
            return {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
                    {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
                    {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64}};
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: {
            const int first = d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                                  ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                              : d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                                  ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                                  : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
            const bool is_double =
                d.has(first + 2) &&
                d.at(first + 2).number<int>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_DOUBLE;
            return operation(first, is_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT);
        }
        case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
            return {{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR}};
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
            return {{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
                    {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR},
                    {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR}};
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
            return {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR},
                    {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR}};
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
            return {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
                    {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR},
                    {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}};
        case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
            if (d.has(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)) return {};
            return {{CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32}};
        default: return {{-1, CUDNN_TYPE_INT64}};  // descriptors that only the library makes
    }
}

/// A convolution as its descriptors describe it.
struct Problem {
    int64_t batch, channels, filters, groups, dims;
    std::vector<int64_t> x, w, y, x_steps, w_steps, y_steps, stride, padding, dilation;
    int type;
    cudnnBackendDescriptorType_t operation;

    explicit Problem(const Descriptor& op) : operation(op.type) {
        const int first = expected_of(op)[0].name;
        // The attributes of all three operations have the same order.
        const Descriptor &conv = op.at(first + 2), &filter = op.at(first + 3), &in = op.at(first + 4),
                         &out = op.at(first + 5);
        x = in.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
        w = filter.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
        y = out.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
        x_steps = in.numbers(CUDNN_ATTR_TENSOR_STRIDES);
        w_steps = filter.numbers(CUDNN_ATTR_TENSOR_STRIDES);
        y_steps = out.numbers(CUDNN_ATTR_TENSOR_STRIDES);
        stride = conv.numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
        padding = conv.numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
        dilation = conv.numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
        type = in.number<int>(CUDNN_ATTR_TENSOR_DATA_TYPE);
        batch = x[0];
        channels = x[1];
        filters = y[1];
        groups = w[1] > 0 ? channels / w[1] : 0;
        dims = static_cast<int64_t>(x.size()) - 2;
        for (const Descriptor* t : {&in, &filter, &out})
            if (t->number<int>(CUDNN_ATTR_TENSOR_DATA_TYPE) != type) groups = 0;
    }
    bool is_valid() const {
        if (groups <= 0 || channels != groups * w[1] || filters % groups != 0 || w[0] != filters ||
            y[0] != batch || (dims != 2 && dims != 3) || w.size() != x.size() || y.size() != x.size() ||
            static_cast<int64_t>(stride.size()) != dims)
            return false;
        for (const auto* sizes : {&x, &w, &y})
            for (const int64_t size : *sizes)
                if (size <= 0) return false;
        for (size_t d = 0; d < stride.size(); ++d) {
            const int64_t room = x[d + 2] + 2 * padding[d] - dilation[d] * (w[d + 2] - 1) - 1;
            if (room < 0 || stride[d] < 1 || dilation[d] < 1 || y[d + 2] != room / stride[d] + 1)
                return false;
        }
        return true;
    }
};

cudnnStatus_t check(const Descriptor& d) {
    for (const auto& [name, type] : expected_of(d)) {
        if (!d.has(name))
            return refuse(CUDNN_STATUS_BAD_PARAM, ("missing attribute " + std::to_string(name)).c_str());
        if (d.attributes.at(name).type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    }
    switch (d.type) {
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
            for (const int name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                                   CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS})
                if (d.attributes.at(name).count != d.number<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS))
                    return CUDNN_STATUS_BAD_PARAM;
            return d.number<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION
                       ? CUDNN_STATUS_SUCCESS
                       : CUDNN_STATUS_NOT_SUPPORTED;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            return Problem(d).is_valid()
                       ? CUDNN_STATUS_SUCCESS
                       : refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "sizes do not match");
        default: return CUDNN_STATUS_SUCCESS;
    }
}

// --- Computation ----------------------------------------------------------------------------------------------------

/// Calls f(offset of x, offset of w, offset of y) for every product of the convolution.
template <class F>
void for_products(const Problem& p, F&& f) {
    const auto dims = static_cast<size_t>(p.dims);
    const int64_t per_group = p.filters / p.groups;
    const auto next = [](std::vector<int64_t>& at, const std::vector<int64_t>& sizes) {
        for (size_t d = at.size(); d-- > 0;) {
            if (++at[d] < sizes[d + 2]) return true;
            at[d] = 0;
        }
        return false;
    };
    for (int64_t n = 0; n < p.batch; ++n)
        for (int64_t k = 0; k < p.filters; ++k)
            for (int64_t c = 0; c < p.w[1]; ++c) {
                const int64_t channel = k / per_group * p.w[1] + c;
                std::vector<int64_t> out(dims, 0);
                do {
                    std::vector<int64_t> tap(dims, 0);
                    do {
                        int64_t x = n * p.x_steps[0] + channel * p.x_steps[1],
                                w = k * p.w_steps[0] + c * p.w_steps[1],
                                y = n * p.y_steps[0] + k * p.y_steps[1];
                        bool inside = true;
                        for (size_t d = 0; d < dims; ++d) {
                            const int64_t at = out[d] * p.stride[d] - p.padding[d] + tap[d] * p.dilation[d];
                            inside = inside && at >= 0 && at < p.x[d + 2];
                            x += at * p.x_steps[d + 2];
                            w += tap[d] * p.w_steps[d + 2];
                            y += out[d] * p.y_steps[d + 2];
                        }
                        if (inside) f(x, w, y);
                    } while (next(tap, p.w));
                } while (next(out, p.y));
            }
}

int64_t numel(const std::vector<int64_t>& sizes) {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
}

/// Rounds to the 10 bits of mantissa of TF32.
float rounded(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x1000) & ~uint32_t{0x1FFF};
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

template <class T, class Sum>
void compute(const Problem& p, void* const (&data)[3], bool tf32) {
    T *x = static_cast<T*>(data[0]), *w = static_cast<T*>(data[1]), *y = static_cast<T*>(data[2]);
    const auto read = [tf32](T value) {
        if constexpr (std::is_same_v<T, float>) return tf32 ? rounded(value) : value;
        else return static_cast<Sum>(value);
    };
    const bool forward = p.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    const bool backward = p.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    T* to = forward ? y : backward ? x : w;
    std::vector<Sum> sums(static_cast<size_t>(numel(forward ? p.y : backward ? p.x : p.w)), Sum(0));
    for_products(p, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
        if (forward) sums[static_cast<size_t>(at_y)] += read(x[at_x]) * read(w[at_w]);
        else if (backward) sums[static_cast<size_t>(at_x)] += read(y[at_y]) * read(w[at_w]);
        else sums[static_cast<size_t>(at_w)] += read(x[at_x]) * read(y[at_y]);
    });
    for (size_t i = 0; i < sums.size(); ++i) to[i] = T(sums[i]);
}

using Queue = int (*)(cudaStream_t, void (*)(void*), void*);
/// The function of the plug-in that queues work on a stream of the fake driver. The plug-in lies beside this library.
Queue queue() {
    static const Queue found = [] {
        Dl_info own;
        dladdr(reinterpret_cast<void*>(&queue), &own);
        std::string path = own.dli_fname;
        path = path.substr(0, path.rfind('/') + 1) + "librushlight_cuda_on_host.so";
        void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
        return plugin ? reinterpret_cast<Queue>(dlsym(plugin, "fake_cuda_queue")) : nullptr;
    }();
    return found;
}

}  // namespace

EXPORT size_t cudnnGetVersion() {
    const char* given = std::getenv("FAKE_CUDNN_VERSION");
    return given ? static_cast<size_t>(std::atoi(given)) : 91900;
}
EXPORT size_t cudnnGetCudartVersion() {
    const char* given = std::getenv("FAKE_CUDNN_CUDART");
    return given ? static_cast<size_t>(std::atoi(given)) : 13000;
}
EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
        case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH: return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
        case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE: return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
        case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER: return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
        case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
            return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
        default: return "CUDNN_STATUS_NOT_SUPPORTED";
    }
}
EXPORT void cudnnGetLastErrorString(char* message, size_t size) {
    std::snprintf(message, size, "%s", error_text.c_str());
    error_text.clear();
}
EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = new cudnnContext;
    ++handles;
    return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t* made) {
    auto* descriptor = new std::shared_ptr<Descriptor>(std::make_shared<Descriptor>());
    (*descriptor)->type = type;
    *made = descriptor;
    ++live;
    return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    delete &of(descriptor);
    --live;
    return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void* values) {
    Descriptor& d = *of(descriptor);
    if (d.finalized) return CUDNN_STATUS_BAD_PARAM;
    Attribute a{type, count, {}, {}};
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        for (int64_t i = 0; i < count; ++i) {
            const auto& given = of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
            if (!given->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
            a.descriptors.push_back(given);
        }
    } else {
        const auto* first = static_cast<const char*>(values);
        a.bytes.assign(first, first + static_cast<size_t>(count) * size_of(type));
    }
    d.attributes[name] = std::move(a);
    return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    Descriptor& d = *of(descriptor);
    if (const cudnnStatus_t status = check(d); status != CUDNN_STATUS_SUCCESS) return status;
    if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        d.engine = d.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
        if (!engines[d.engine].has_plan) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine has no plan");
        ++plans;
    }
    d.finalized = true;
    return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                                              int64_t most, int64_t* count, void* values) {
    const Descriptor& d = *of(descriptor);
    if (!d.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    const auto give = [&](int64_t value) {
        *count = 1;
        if (most > 0) *static_cast<int64_t*>(values) = value;
        return CUDNN_STATUS_SUCCESS;
    };
    const auto fill = [](cudnnBackendDescriptor_t to, int engine, const Attribute& graph) {
        of(to)->engine = engine;
        of(to)->finalized = true;
        of(to)->attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = graph;
    };
    switch (name) {
        case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: return give(kEngines);
        case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
        case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: return give(engines[d.engine].workspace);
        case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return give(d.engine);
        case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
            const Attribute& graph = d.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
            const Problem problem(graph.descriptors[0]->at(CUDNN_ATTR_OPERATIONGRAPH_OPS));
            const int first =
                d.number<int>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK ? kEngines - 1 : 0;
            const int offered = refused >> problem.type & 1 ? 0 : kEngines - first;
            // Like the library, it counts more configurations than it returns.
            *count = most == 0 ? offered + 1 : offered;
            for (int64_t i = 0; i < std::min<int64_t>(most, offered); ++i)
                fill(static_cast<cudnnBackendDescriptor_t*>(values)[i], first + static_cast<int>(i), graph);
            return CUDNN_STATUS_SUCCESS;
        }
        case CUDNN_ATTR_ENGINECFG_ENGINE:
            *count = 1;
            fill(*static_cast<cudnnBackendDescriptor_t*>(values), d.engine,
                 d.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
            return CUDNN_STATUS_SUCCESS;
        case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
            const auto& notes = engines[d.engine].notes;
            *count = static_cast<int64_t>(notes.size());
            std::copy(notes.begin(), notes.end(), static_cast<cudnnBackendNumericalNote_t*>(values));
            return CUDNN_STATUS_SUCCESS;
        }
        default: return CUDNN_STATUS_NOT_SUPPORTED;
    }
}
EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack) {
    const Descriptor &p = *of(plan), &v = *of(pack);
    if (!p.finalized || !v.finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    // Two threads must not use a handle or a plan at once.
    if (handle->busy.exchange(true) || p.busy.exchange(true)) std::abort();
    const std::shared_ptr<void> done(nullptr, [&](void*) { handle->busy = p.busy = false; });
    if (const int status = next_status.exchange(0)) return static_cast<cudnnStatus_t>(status);
    const Engine& engine = engines[p.engine];
    if (!engine.runs) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not run");
    const Descriptor& op = p.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                               .at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
                               .at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const Problem problem(op);
    const int first = expected_of(op)[0].name;
    void* data[3] = {};
    const auto ids = v.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto addresses = v.numbers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    if (ids.size() != addresses.size()) return CUDNN_STATUS_BAD_PARAM;
    for (int i = 0; i < 3; ++i) {
        const Descriptor& tensor = op.at(first + (i == 0 ? 4 : i == 1 ? 3 : 5));
        for (size_t j = 0; j < ids.size(); ++j)
            if (ids[j] == tensor.number<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID))
                data[i] = reinterpret_cast<void*>(addresses[j]);
        if (!data[i]) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
        last_alignment = tensor.number<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
        if (reinterpret_cast<int64_t>(data[i]) % last_alignment != 0)
            return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    }
    auto* workspace = reinterpret_cast<char*>(v.number<int64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
    if (engine.workspace > 0 && !workspace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    last_engine = p.engine;
    last_channels_last = problem.x_steps[1] == 1;
    ++executions;
    auto* work = new std::function<void()>(
        [=, size = engine.workspace, index = p.engine, x = data[0], w = data[1], y = data[2]] {
            if (size > 0) std::memset(workspace, 0xAB, static_cast<size_t>(size));
            if (const int delay = engines[index].delay)
                std::this_thread::sleep_for(std::chrono::milliseconds(delay));
            void* const all[3] = {x, w, y};
            switch (problem.type) {
                case CUDNN_DATA_HALF: return compute<Half, float>(problem, all, false);
                case CUDNN_DATA_BFLOAT16: return compute<BFloat16, float>(problem, all, false);
                case CUDNN_DATA_DOUBLE: return compute<double, double>(problem, all, false);
                default: return compute<float, float>(problem, all, index == kTensorCore);
            }
        });
    // A graph of the driver may run the work several times, so it is never deleted.
    const int error =
        queue()(handle->stream, [](void* work) { (*static_cast<std::function<void()>*>(work))(); }, work);
    return error ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

// Functions that tests call through ctypes.
EXPORT int fake_cudnn_last_engine() { return last_engine; }
EXPORT int fake_cudnn_executions() { return executions; }
EXPORT int fake_cudnn_plans() { return plans; }
EXPORT int fake_cudnn_handles() { return handles; }
EXPORT int fake_cudnn_live_descriptors() { return live; }
EXPORT int64_t fake_cudnn_last_alignment() { return last_alignment; }
EXPORT int fake_cudnn_last_channels_last() { return last_channels_last; }
/// Makes an engine slower by a number of milliseconds.
EXPORT void fake_cudnn_slow(int engine, int delay) { engines[engine].delay = delay; }
/// Offers no engine for data types, given as bits.
EXPORT void fake_cudnn_refuse(unsigned types) { refused = types; }
/// Lets the next execution return a status.
EXPORT void fake_cudnn_fail(int status) { next_status = status; }
