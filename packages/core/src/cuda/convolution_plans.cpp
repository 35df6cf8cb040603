#include "cuda/convolution_plans.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "cuda/cudnn.h"
#include "cuda/driver.h"

namespace rushlight::cuda {
namespace {

// --- Descriptions ------------------------------------------------------------------------------------------------

enum Id : int64_t { kX = 1, kW = 2, kY = 3 };  // of the tensors in a graph

cudnnDataType_t type_of(DType dtype) {
    switch (dtype) {
        case DType::Float16: return CUDNN_DATA_HALF;
        case DType::BFloat16: return CUDNN_DATA_BFLOAT16;
        case DType::Float32: return CUDNN_DATA_FLOAT;
        default: return CUDNN_DATA_DOUBLE;
    }
}

Descriptor describe(const ConvolutionForm& form, Id id, const int64_t (&sizes)[5]) {
    const int ndim = form.dims + 2;
    int64_t strides[5], step = 1;
    if (form.channels_last) {
        strides[1] = 1;
        step = sizes[1];
    }
    for (int d = ndim - 1; d >= 0; --d) {
        if (form.channels_last && d == 1) continue;
        strides[d] = step;
        step *= sizes[d];
    }
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(form.dtype));
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes, ndim);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, strides, ndim);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{id});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{form.alignment});
    made.finalize();
    return made;
}

/// The names that cuDNN gives to an operation of each kind, and to its attributes.
struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, convolution, w, x, y;
};
const Names& names_of(ConvolutionForm::Kind kind) {
    static constexpr Names kNames[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
    return kNames[static_cast<int>(kind)];
}

/// The operation graph of a form, with the descriptors that it consists of.
struct OperationGraph {
    Descriptor x, w, y, convolution, operation, graph;

    explicit OperationGraph(const ConvolutionForm& form)
        : x(describe(form, kX, form.x)),
          w(describe(form, kW, form.w)),
          y(describe(form, kY, form.y)),
          convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR),
          operation(names_of(form.kind).operation),
          graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        const bool is_double = form.dtype == DType::Float64;
        convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{form.dims});
        // Sums are computed in this type. TF32 is a property of the engine.
        convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
        convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
        convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, form.padding, form.dims);
        convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, form.padding, form.dims);
        convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, form.stride, form.dims);
        convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, form.dilation, form.dims);
        convolution.finalize();

        const Names& names = names_of(form.kind);
        if (is_double) {
            operation.set(names.alpha, 1.0);
            operation.set(names.beta, 0.0);
        } else {
            operation.set(names.alpha, 1.0F);
            operation.set(names.beta, 0.0F);
        }
        operation.set(names.convolution, convolution);
        operation.set(names.w, w);
        operation.set(names.x, x);
        operation.set(names.y, y);
        operation.finalize();
        graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
        graph.finalize();
    }
};

// --- Plans --------------------------------------------------------------------------------------------------------

/// The largest workspace of a plan in bytes. Plans that need more are not used.
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

/// Whether an engine computes as the form requires.
bool is_permitted(const ConvolutionForm& form, const Descriptor& configuration) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t to = engine.get();
    configuration.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    const int64_t count = engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    for (int64_t i = 0; i < std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); ++i)
        switch (notes[i]) {
            // Sums of half types are computed in float32, and float32 operands are not rounded to a half type.
            case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
            case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return false;
            case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
                if (form.deterministic) return false;
                break;
            case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
                if (form.dtype == DType::Float32 && !form.tf32) return false;
                break;
            default: break;
        }
    return configuration.read_int(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) <= kMostWorkspace;
}

/// A plan, which computes a form by one engine, with all descriptors that it was made from.
struct Plan {
    std::shared_ptr<const OperationGraph> graph;
    Descriptor configuration, plan;
    int64_t workspace = 0;
    std::mutex mutex;  // held while the plan is queued: not all engines permit that by two threads at once
};

/// The configurations of engines that the library recommends for a form on a device, the most promising ones first.
class Candidates {
  public:
    Candidates(const ConvolutionForm& form, const Descriptor& device)
        : graph_(std::make_shared<const OperationGraph>(form)), device_(device) {
        for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
            Descriptor advice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
            advice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_->graph);
            advice.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
            advice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
            const cudnnStatus_t status = advice.try_finalize();
            if (status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000) continue;
            check(status, "choosing a kernel for a convolution");
            const int64_t count =
                advice.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
            std::vector<Descriptor> made;
            std::vector<cudnnBackendDescriptor_t> to;
            for (int64_t i = 0; i < count; ++i)
                to.push_back(made.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
            // The library writes only those that the device supports, and may return fewer than it counted.
            const int64_t written = count ? advice.read(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, to.data())
                                          : 0;
            for (int64_t i = 0; i < std::min(written, count); ++i) {
                ++recommended_;
                auto& one = made[static_cast<size_t>(i)];
                if (is_permitted(form, one)) configurations_.push_back(std::move(one));
            }
        }
    }

    size_t size() const { return configurations_.size(); }
    /// Makes the plan of a candidate, at most once. Returns null if the engine cannot be used.
    std::shared_ptr<Plan> plan(size_t i) {
        auto made = std::make_shared<Plan>();
        made->graph = graph_;
        made->configuration = std::move(configurations_[i]);
        made->plan = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, made->configuration);
        made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_);
        if (made->plan.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
        made->workspace = made->plan.read_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        return made;
    }
    int64_t recommended() const { return recommended_; }
    int64_t engines() const { return graph_->graph.read_int(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT); }

  private:
    std::shared_ptr<const OperationGraph> graph_;
    const Descriptor& device_;
    std::vector<Descriptor> configurations_;
    int64_t recommended_ = 0;
};

/// The properties of a device, for which plans are made.
const Descriptor& properties_of(int32_t device) {
    static std::mutex mutex;
    static auto* all = new std::map<int32_t, Descriptor>;
    std::lock_guard lock(mutex);
    const auto found = all->find(device);
    if (found != all->end()) return found->second;
    Descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    made.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, device);
    check(made.try_finalize(), "querying the device");
    return all->emplace(device, std::move(made)).first->second;
}

// --- The cache ----------------------------------------------------------------------------------------------------

/// The number of forms whose plans are kept. Tests use a smaller value.
#ifndef RUSHLIGHT_CUDA_PLANS
#define RUSHLIGHT_CUDA_PLANS 4096
#endif
constexpr size_t kPlans = RUSHLIGHT_CUDA_PLANS;

struct Choice {
    std::shared_ptr<Plan> plan;  // null if the library has no kernel for the form
    bool timed = false;          // the plan was the fastest; otherwise the library recommended it
    bool recorded = false;       // a graph may contain the plan's kernels, so the plan is kept
    uint64_t used = 0;           // when, as a number of calls
};

class Cache {
  public:
    using Key = std::pair<int32_t, ConvolutionForm>;

    /// Returns the choice for a form, if there is one that is good enough.
    std::optional<Choice> find(const Key& key, bool timed, bool recorded) {
        std::lock_guard lock(mutex_);
        const auto found = choices_.find(key);
        if (found == choices_.end() || (timed && found->second.plan && !found->second.timed)) return {};
        found->second.used = ++calls_;
        found->second.recorded = found->second.recorded || recorded;
        return found->second;
    }
    void store(const Key& key, Choice choice) {
        std::lock_guard lock(mutex_);
        choice.used = ++calls_;
        Choice& kept = choices_[key];
        choice.recorded = choice.recorded || kept.recorded;
        // A graph that contains the kernels of the former plan needs them.
        if (kept.recorded && kept.plan != choice.plan) recorded_.push_back(kept.plan);
        kept = std::move(choice);
        if (choices_.size() > kPlans) remove_oldest();
    }

  private:
    void remove_oldest() {
        auto oldest = choices_.end();
        for (auto at = choices_.begin(); at != choices_.end(); ++at)
            if (!at->second.recorded && (oldest == choices_.end() || at->second.used < oldest->second.used))
                oldest = at;
        if (oldest != choices_.end()) choices_.erase(oldest);
    }

    std::mutex mutex_;
    std::map<Key, Choice> choices_;
    std::vector<std::shared_ptr<Plan>> recorded_;
    uint64_t calls_ = 0;
};
Cache& cache() {
    static auto* made = new Cache;  // never destroyed: tensors may outlive main()
    return *made;
}

// --- Calls --------------------------------------------------------------------------------------------------------

/// An event that measures time.
class TimedEvent {
  public:
    explicit TimedEvent(cudaStream_t stream) {
        check(driver.create_event(&event_, cudaEventDefault), "creating an event");
        check(driver.record_event(event_, stream), "recording an event");
    }
    ~TimedEvent() { driver.destroy_event(event_); }
    TimedEvent(const TimedEvent&) = delete;
    /// Waits until this event has been reached, and returns the time since the other event.
    float since(const TimedEvent& start) const {
        check(driver.synchronize_event(event_), "timing a convolution");
        float milliseconds = 0;
        check(driver.elapsed(&milliseconds, start.event_, event_), "timing a convolution");
        return milliseconds;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

/// The call of a convolution.
class Call {
  public:
    Call(KernelContext* context, cudaStream_t stream, void* x, void* w, void* y)
        : context_(context), stream_(stream), handle_(context->call->device, stream), data_{x, w, y} {}

    /// Enqueues a plan. Raises Failure if no memory is left.
    cudnnStatus_t run(Plan& plan) {
        if (plan.workspace > room_) {
            workspace_ = scratch<char>(context_, plan.workspace);
            room_ = plan.workspace;
        }
        static constexpr int64_t kIds[] = {kX, kW, kY};
        Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kIds, 3);
        pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data_, 3);
        pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, static_cast<void*>(workspace_));
        pack.finalize();
        const std::lock_guard lock(plan.mutex);
        return cudnn().execute(handle_, plan.plan.get(), pack.get());
    }

    /// Returns the first plan of the candidates that can be queued, after queueing it, or null.
    std::shared_ptr<Plan> run_first(Candidates& candidates) {
        for (size_t i = 0; i < candidates.size(); ++i)
            if (auto plan = candidates.plan(i); plan && try_run(*plan)) return plan;
        return nullptr;
    }

    /// Times plans of the candidates, and returns the fastest one, or null. The last run of another plan may have
    /// written the result, which is then as good.
    std::shared_ptr<Plan> run_all(Candidates& candidates, int most) {
        constexpr int kRuns = 3;
        std::shared_ptr<Plan> fastest;
        float best = 0;
        for (size_t i = 0; i < candidates.size() && (most <= 0 || tried_ < most); ++i) {
            auto plan = candidates.plan(i);
            if (!plan || !try_run(*plan)) continue;  // the first run loads the kernel
            ++tried_;
            const TimedEvent start(stream_);
            for (int run = 0; run < kRuns; ++run) check(this->run(*plan), "timing a convolution");
            const float time = TimedEvent(stream_).since(start);
            if (fastest && time >= best) continue;
            fastest = std::move(plan);
            best = time;
        }
        return fastest;
    }

    /// Whether a plan was not used because no memory was left for its workspace.
    bool lacked_memory() const { return lacked_memory_; }

  private:
    /// Returns false if the plan cannot be used: its engine refuses it, or no memory is left for its workspace.
    bool try_run(Plan& plan) {
        try {
            const cudnnStatus_t status = run(plan);
            if (status / 1000 == CUDNN_STATUS_EXECUTION_FAILED / 1000)
                raise(status, "computing a convolution");
            return status == CUDNN_STATUS_SUCCESS;
        } catch (const Failure& failure) {
            if (failure.status != BackendStatus::OutOfMemory) throw;
            lacked_memory_ = true;
            return false;
        }
    }

    KernelContext* context_;
    cudaStream_t stream_;
    CudnnHandle handle_;
    void* data_[3];
    char* workspace_ = nullptr;
    int64_t room_ = 0;
    int tried_ = 0;
    bool lacked_memory_ = false;
};

}  // namespace

bool convolve_by_library(KernelContext* context, cudaStream_t stream, const ConvolutionForm& form, void* x,
                         void* w, void* y) {
    const int32_t device = context->call->device;
    bool recorded = false;
    check(driver.is_capturing(stream, &recorded), "querying a stream");
    // Nothing can be timed while a graph is recorded.
    const bool timed = permits(Setting::TimedConvolutions) && !recorded;
    const Cache::Key key(device, form);
    const std::optional<Choice> found = cache().find(key, timed, recorded);
    if (found && !found->plan) return false;
    Call call(context, stream, x, w, y);
    if (found) {
        check(call.run(*found->plan), "computing a convolution");
        return true;
    }
    Candidates candidates(form, properties_of(device));
    Choice choice;
    choice.timed = timed;
    choice.recorded = recorded;
    choice.plan = timed ? call.run_all(candidates, host->setting(Setting::TimedCandidates))
                        : call.run_first(candidates);
    const bool done = choice.plan != nullptr;
    if (done || !call.lacked_memory()) cache().store(key, std::move(choice));
    return done;
}

ConvolutionOffer offered_by_library(const ConvolutionForm& form, const std::string& device) {
    Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties.set_all(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                       static_cast<int64_t>(device.size()), device.data());
    check(properties.try_finalize(), "describing a device");
    Candidates candidates(form, properties);
    ConvolutionOffer offer{candidates.engines(), candidates.recommended(),
                           static_cast<int64_t>(candidates.size()), 0, 0};
    for (size_t i = 0; i < candidates.size(); ++i)
        if (const auto plan = candidates.plan(i); plan && ++offer.plans == 1)
            offer.workspace = plan->workspace;
    return offer;
}

}  // namespace rushlight::cuda
