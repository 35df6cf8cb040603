// The backward pass.
#pragma once

#include <atomic>
#include <exception>
#include <functional>

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

struct BackwardOptions {
    bool retain_graph = false;
    bool create_graph = false;
    bool allow_unreachable = true;  // an input that the outputs do not depend on gives an undefined gradient
    bool accumulate_grad = true;  // into the leaves' `grad`; else the gradients of `inputs` are returned
};

/// The node at which a pass begins, and the gradient of its result (defined, and of the result's shape).
struct Root {
    Edge edge;
    Tensor grad;
};
/// Returns the root of a tensor. Raises RuntimeError if the tensor has no history, or the gradient does not
/// fit. `i` is the tensor's number, for the message. An undefined gradient means ones, for outputs of one
/// element.
RL_API Root root_of(const Tensor& output, Tensor grad, size_t i);
/// Returns the edge at which the gradient of an input arrives. Raises RuntimeError if the input does not
/// require grad.
RL_API Edge input_edge(const Tensor& input, size_t i);

/// Runs the graph behind `roots`; `inputs` as below.
RL_API std::vector<Tensor> run_backward(std::span<const Root> roots, std::span<const Edge> inputs,
                                        const BackwardOptions& options);

/// Runs the graph behind `outputs` from the gradients `grads` (undefined: ones, for outputs of one element).
/// With `inputs`, only the nodes that lead to them run: the gradients of the inputs are returned, or
/// accumulated with accumulate_grad.
RL_API std::vector<Tensor> run_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options);

/// tensor.backward(): accumulates into the leaves.
RL_API void backward(const Tensor& output, const Tensor& grad = Tensor(), bool retain_graph = false,
                     bool create_graph = false);

/// The pass that runs on this thread, for hooks and nodes: its number (0 for none), and whether it is running
/// a node.
RL_API uint64_t current_pass_id();
RL_API bool current_pass_runs(Node* node);
/// Calls a function when the backward pass that runs on this thread has ended, on the thread that started the pass: after
/// all gradients are accumulated, and not if the pass raises. If passes are nested, the outermost pass is meant.
RL_API void queue_callback(std::function<void()> callback);

namespace detail {
extern RL_API constinit thread_local bool parallel_branches RL_TLS_MODEL;
extern RL_API std::atomic<bool> device_threads;
}  // namespace detail
/// Whether the nodes of devices other than the CPU run on the threads of those devices (the default) or on
/// the caller's thread: Note [Threads of a pass]. The setting applies to the process, and is read when a pass
/// begins.
inline bool device_threads() { return detail::device_threads.load(std::memory_order_relaxed); }
inline void set_device_threads(bool on) { detail::device_threads.store(on, std::memory_order_relaxed); }
/// Whether passes that this thread starts run independent branches of a graph on several threads.
inline bool parallel_branches() { return detail::parallel_branches; }
/// Enables parallel branches in a scope: Note [Parallel branches].
class ParallelBranches {
  public:
    explicit ParallelBranches(bool on = true) : before_(detail::parallel_branches) {
        detail::parallel_branches = on;
    }
    ~ParallelBranches() { detail::parallel_branches = before_; }
    ParallelBranches(const ParallelBranches&) = delete;

  private:
    bool before_;
};

/// For language bindings: functions that a thread of the engine calls first and last, and that transfer an
/// exception that it caught.
struct ThreadFunctions {
    void* (*begin)();
    void (*end)(void* state);  // not called on the threads of devices, which never end
    std::exception_ptr (*carry)(std::exception_ptr);
};
/// Sets the functions, which must stay valid until the process ends.
RL_API void set_thread_functions(const ThreadFunctions* functions);
/// Returns the functions that were set, or null.
const ThreadFunctions* thread_functions();

/// Attaches autograd to core: stages, per-tensor state. Idempotent; importing rushlight_autograd calls it, a C++ program
/// calls it once.
RL_API void initialize();

}  // namespace rushlight::autograd
