// sources: autograd/src/engine.cpp autograd/src/pass.cpp autograd/src/scheduler.cpp autograd/src/device_thread.cpp autograd/src/node.cpp
// sources: autograd/src/variable.cpp autograd/src/view_node.cpp autograd/src/retained.cpp autograd/src/growth.cpp autograd/src/saved.cpp
// sources: autograd/src/tangent.cpp autograd/src/transform.cpp autograd/src/layout.cpp autograd/src/batch/level.cpp
// sources: core/src/tensor/*.cpp core/src/sparse/tensors.cpp core/src/dispatch/dispatch.cpp core/src/dispatch/kernel_owners.cpp
// sources: core/src/runtime/*.cpp core/src/ops/memory_format.cpp
// sources: testing/src/rushlight_testing/native/toy_device.cpp
//
// The engine on many threads, for the thread sanitizer. The engine calls operators through their entries in core's
// table, so this program defines the few operators that are called as simple loops, and no other operators of core
// need be built. test_cpp.py generates empty entries for operators that the engine refers to but does not call here.
#include <atomic>
#include <thread>

#include "check.h"
#include "dispatch/float8.h"
#include "dispatch/shared_kernel.h"
#include "history.h"
#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/growth.h"
#include "rushlight/autograd/saved.h"
#include "rushlight/backend.h"
#include "rushlight/parallel.h"
#include "sparse/stage.h"

extern "C" const rushlight::Backend* rushlight_backend();  // defined by the toy device

// This program makes no sparse tensors and no float8 tensors.
void rushlight::install_sparse_stage() {}
void rushlight::compute_float8(const Operator&, StageMask, Stack&) {}

using namespace rushlight;
using namespace rushlight::autograd;

namespace {

constexpr int kThreads = 8;
constexpr int64_t kShape[] = {16}, kStride[] = {1};

Tensor filled(float value) {
    Tensor t = make_tensor(kShape, DType::Float32);
    for (int64_t i = 0; i < 16; ++i) t.data<float>()[i] = value;
    return t;
}

// --- the operators that the engine calls ---

Tensor add_values(const TensorOrScalar& input, const TensorOrScalar& other, Scalar) {
    Tensor sum = filled(0);
    for (int64_t i = 0; i < 16; ++i)
        sum.data<float>()[i] = input.tensor().data<float>()[i] + other.tensor().data<float>()[i];
    return sum;
}
Tensor add_values_(const Tensor& input, const TensorOrScalar& other, Scalar) {
    begin_write("add_", input);
    for (int64_t i = 0; i < 16; ++i) input.data<float>()[i] += other.tensor().data<float>()[i];
    return input;
}
Tensor copy_values(const Tensor& input, std::optional<std::string_view>) {
    Tensor copy = filled(0);
    for (int64_t i = 0; i < 16; ++i) copy.data<float>()[i] = input.data<float>()[i];
    return copy;
}

template <class F>
void* address(F* function) {
    return reinterpret_cast<void*>(function);
}

}  // namespace

namespace rushlight {
#define RL_ENTRY(symbol, function)                                                       \
    Operator symbol {                                                                    \
        #symbol, "", 0, Form::Functional, false, function, nullptr, nullptr, nullptr, {} \
    }
RL_ENTRY(op_add, address(add_values));
RL_ENTRY(op_add_, address(add_values_));
RL_ENTRY(op_clone, address(copy_values));
std::span<Operator* const> operator_table() { return {}; }  // this program looks up no operators by name
std::span<SharedKernel* const> shared_kernels() { return {}; }
}  // namespace rushlight

namespace {

// The part of initialize() that does not attach derivatives.
[[maybe_unused]] const bool attached = (set_meta_table(meta_functions()), true);

// --- a graph ---

// The node of input * factor, or of the sum of two tensors. It saves its inputs, as the nodes of operators do.
struct Linear final : Node {
    RL_NODE_MEMORY
    Linear(uint32_t arguments, float factor) : Node("Linear", 1, arguments), factor(factor) {}
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override {
        check_not_released();
        if (!grads[0].defined()) return;
        for (size_t k = 0; k < out.size(); ++k) {
            Tensor input = inputs[k].unpack(this);
            CHECK(input.defined());
            if (!wants(static_cast<uint32_t>(k))) continue;
            out[k] = filled(0);
            for (int64_t i = 0; i < 16; ++i) out[k].data<float>()[i] = grads[0].data<float>()[i] * factor;
        }
    }
    void release_saved() override {
        Node::release_saved();
        for (SavedTensor& saved : inputs) saved.release();
    }
    float factor;
    SavedTensor inputs[2];
};

Tensor record(std::initializer_list<Tensor> arguments, float factor) {
    Tensor result = filled(1);
    std::vector<Edge> edges;
    for (const Tensor& t : arguments) edges.push_back(recorded_edge(t));
    auto* node = new Linear(static_cast<uint32_t>(arguments.size()), factor);
    auto owner = Ref<Node>::adopt(node);
    size_t k = 0;
    for (const Tensor& t : arguments) {
        node->inputs[k].save(t);
        node->edges()[k] = std::move(edges[k]);
        ++k;
    }
    set_history(result, owner);
    return result;
}
Tensor times(const Tensor& t, float factor) { return record({t}, factor); }
Tensor plus(const Tensor& a, const Tensor& b) { return record({a, b}, 1); }

// The node of a copy to a device; it copies gradients back. Tensors on devices have no values in this test.
struct Move final : Node {
    RL_NODE_MEMORY
    explicit Move(Device back) : Node("Move", 1, 1), back(back) {}
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override {
        check_not_released();
        if (!grads[0].defined() || !wants(0)) return;
        out[0] = back.type == DeviceType::CPU ? filled(1) : make_tensor(kShape, DType::Float32, back);
    }
    Device back;
};
Tensor moved(const Tensor& t, Device device) {
    Tensor result = device.type == DeviceType::CPU ? filled(1) : make_tensor(kShape, DType::Float32, device);
    Edge edge = recorded_edge(t);
    auto owner = Ref<Node>::adopt(new Move(t.device()));
    owner->edges()[0] = std::move(edge);
    set_history(result, owner);
    return result;
}

// Returns a sum of branches that go through two devices and back. Its derivative is `width`.
Tensor detours(const Tensor& x, int width = 4, int depth = 6) {
    Tensor total;
    for (int b = 0; b < width; ++b) {
        Tensor y = x;
        for (int d = 0; d < depth; ++d) {
            y = moved(times(y, 1), Device{DeviceType::Plugin, static_cast<int8_t>((b + d) % 2)});
            y = moved(moved(y, y.device()), Device{});
        }
        total = total.defined() ? plus(total, y) : y;
    }
    return total;
}

Tensor make_leaf() {
    Tensor t = filled(1);
    t.set_requires_grad(true);
    return t;
}

// Returns a sum of `width` branches with `depth` nodes each. Its derivative is `width`.
Tensor branches(const Tensor& x, int width = 4, int depth = 6) {
    Tensor total;
    for (int b = 0; b < width; ++b) {
        Tensor y = x;
        for (int i = 0; i < depth; ++i) y = times(y, i % 2 ? 2.0f : 0.5f);
        total = total.defined() ? plus(total, y) : y;
    }
    return total;
}

void pass(const Tensor& output, bool retain) { autograd::backward(output, filled(1), retain); }

template <class F>
void on_threads(F body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
}

// A hook that raises an error in every third call.
struct Raises final : Hook {
    void call(std::span<Tensor>, std::span<const Tensor>) override {
        if (calls.fetch_add(1) % 3 == 0) throw_value("a hook that raises");
    }
    std::atomic<int> calls{0};
};
struct Counts final : Hook {
    void call(std::span<Tensor>, std::span<const Tensor>) override { ++calls; }
    std::atomic<int> calls{0};
};

}  // namespace

TEST(separate_graphs) {
    on_threads([](int) {
        for (int i = 0; i < 20; ++i) {
            Tensor x = make_leaf();
            pass(branches(x), false);
            CHECK_EQUAL(x.grad().data<float>()[3], 4.0f);
        }
    });
}

TEST(separate_graphs_of_one_leaf) {
    Tensor x = make_leaf();  // the first thread creates its accumulator
    on_threads([&](int) {
        for (int i = 0; i < 20; ++i) pass(branches(x), false);
    });
    CHECK_EQUAL(x.grad().data<float>()[3], 4.0f * 20 * kThreads);
}

TEST(one_graph_that_is_retained) {
    Tensor x = make_leaf(), y = branches(x);
    on_threads([&](int) {
        for (int i = 0; i < 20; ++i) pass(y, true);
    });
    CHECK_EQUAL(x.grad().data<float>()[3], 4.0f * 20 * kThreads);
}

TEST(one_graph_that_is_used_up) {
    for (int round = 0; round < 20; ++round) {
        Tensor x = make_leaf(), y = times(branches(x), 1);
        std::atomic<int> done{0}, refused{0};
        on_threads([&](int i) {
            try {
                pass(y, i % 2 == 1);  // some passes only read the graph
                if (i % 2 == 0) ++done;
            } catch (const Error& error) {
                CHECK(std::string(error.what()).find("used already") != std::string::npos);
                ++refused;
            }
        });
        CHECK(done.load() <= 1);
        CHECK(done.load() == 1 || refused.load() > 0);
    }
}

TEST(hooks_that_raise) {
    Tensor x = make_leaf(), y = branches(x);
    auto raises = std::make_shared<Raises>();
    auto counts = std::make_shared<Counts>();
    grad_fn(y)->hooks().pre.push_back(raises);
    meta(x.impl()).hooks.get().post_accumulate.push_back(counts);
    std::atomic<int> passed{0};
    on_threads([&](int) {
        for (int i = 0; i < 15; ++i) {
            try {
                pass(y, true);
                ++passed;
            } catch (const Error& error) { CHECK(error.kind() == ErrorKind::Value); }
        }
    });
    CHECK_EQUAL(passed.load(), 2 * 15 * kThreads / 3);
    CHECK_EQUAL(counts->calls.load(), passed.load());
    CHECK_EQUAL(x.grad().data<float>()[0], 4.0f * static_cast<float>(passed.load()));
}

TEST(hooks_that_come_and_go) {
    Tensor x = make_leaf(), y = branches(x);
    Ref<Node> node = grad_fn(y);
    std::atomic<bool> stop{false};
    std::thread changes([&] {
        while (!stop) {
            auto hook = std::make_shared<Counts>();
            {
                std::lock_guard lock(hooks_mutex());
                node->hooks().pre.push_back(hook);
            }
            std::lock_guard lock(hooks_mutex());
            node->hooks().pre.clear();
        }
    });
    on_threads([&](int) {
        for (int i = 0; i < 10; ++i) pass(y, true);
    });
    stop = true;
    changes.join();
}

TEST(parallel_branches) {
    set_num_threads(4);
    Tensor x = make_leaf(), y = branches(x, 8, 12);
    on_threads([&](int) {
        ParallelBranches on;
        for (int i = 0; i < 5; ++i) pass(y, true);
        pass(branches(x, 8, 12), false);
    });
    CHECK_EQUAL(x.grad().data<float>()[3], 8.0f * 6 * kThreads);
}

TEST(exceptions_of_parallel_branches) {
    set_num_threads(4);
    for (int round = 0; round < 20; ++round) {
        Tensor x = make_leaf();
        Tensor a = times(x, 2), b = times(x, 3), y = plus(times(a, 1), times(b, 1));
        auto raises = std::make_shared<Raises>();
        grad_fn(a)->hooks().pre.push_back(raises);
        grad_fn(b)->hooks().pre.push_back(raises);
        ParallelBranches on;
        CHECK_RAISES(Value, "a hook that raises", pass(y, false));
    }
}

TEST(stale_views_that_are_shared) {
    for (int round = 0; round < 20; ++round) {
        Tensor root = times(make_leaf(), 2), view = make_view(root, kShape, kStride, 0);
        for (int write = 0; write < 3; ++write) {
            rebase_history(root, grad_fn(times(make_leaf(), 3)));
            Node* seen[kThreads];
            on_threads([&](int i) { seen[i] = gradient_edge(view).node.get(); });
            for (Node* node : seen) CHECK(node && node == seen[0]);
        }
    }
}

TEST(threads_of_devices) {
    register_backend(*rushlight_backend());
    Tensor x = make_leaf(), y = detours(x);
    on_threads([&](int i) {
        ParallelBranches on(i % 2 == 0);
        for (int k = 0; k < 5; ++k) pass(y, true);
        pass(detours(x), false);
    });
    CHECK_EQUAL(x.grad().data<float>()[3], 4.0f * 6 * kThreads);
}

TEST(exceptions_of_devices) {
    for (int round = 0; round < 20; ++round) {
        Tensor x = make_leaf();
        const Device device{DeviceType::Plugin, static_cast<int8_t>(round % 2)};
        Tensor a = moved(x, device), y = moved(moved(a, device), Device{});
        auto raises = std::make_shared<Raises>();
        grad_fn(a)->hooks().pre.push_back(raises);
        CHECK_RAISES(Value, "a hook that raises", pass(plus(y, detours(x)), false));
    }
}

TEST(graphs_that_grow) {
    on_threads([](int) {
        Tensor x = make_leaf(), total = times(x, 1);
        for (int i = 0; i < 100; ++i) {
            Tensor loss = times(x, 2);
            pass(loss, false);
            total = plus(total, loss);
        }
        take_growth_report();
    });
}

TEST(graphs_that_die_elsewhere) {
    Tensor x = make_leaf();
    std::vector<Tensor> outputs;
    for (int i = 0; i < kThreads; ++i) outputs.push_back(branches(x, 4, 200));
    on_threads([&](int i) { outputs[static_cast<size_t>(i)] = Tensor(); });
}

namespace {
// The state of simulated language bindings: tensors whose wrappers they own, and last references that were passed to
// them.
std::mutex handed_lock;
std::vector<TensorImpl*> handed;
std::atomic<int> ended{0};

Tensor wrapped(void* wrapper) {
    static float values[16];
    auto release = [](void*, void*, size_t) { ++ended; };
    Tensor t = make_over(Storage::wrap(values, sizeof(values), {}, StorageKind::Foreign, release, nullptr),
                         kShape, kStride, 0, DType::Float32);
    t.impl()->set_wrapper(wrapper, true);
    return t;
}
void drop_handed() {
    std::lock_guard lock(handed_lock);
    for (TensorImpl* impl : std::exchange(handed, {})) {
        impl->set_wrapper(nullptr, false);
        Ref<TensorImpl>::adopt(impl);
    }
}
}  // namespace

TEST(wrappers_that_are_found_while_their_tensors_end) {
    set_wrapper_table({[](TensorImpl* impl) {
        std::lock_guard lock(handed_lock);
        handed.push_back(impl);
    }});
    for (int round = 0; round < 300; ++round) {
        int wrapper = 0;
        ended = 0;
        std::vector<Tensor> holders(kThreads - 1, wrapped(&wrapper));
        TensorImpl* impl = holders[0].impl();
        std::atomic<int> left{kThreads - 1};
        on_threads([&](int i) {
            if (i < kThreads - 1) {
                holders[static_cast<size_t>(i)] = Tensor();
                --left;
                return;
            }
            do {
                Tensor found = Tensor::share(impl);
                CHECK(found.impl()->wrapper() == &wrapper && found.impl()->owns_wrapper());
            } while (left);
        });
        CHECK_EQUAL(handed.size(), 1u);
        CHECK_EQUAL(ended.load(), 0);
        drop_handed();
        CHECK_EQUAL(ended.load(), 1);
    }
}
