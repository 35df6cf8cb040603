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
    bool accumulate_grad = true;  // add to the leaves' `grad`; if false, return the gradients of `inputs`
};

/// The node at which a pass begins, and the gradient of its result. The gradient is defined and has the result's
/// shape.
struct Root {
    Edge edge;
    Tensor grad;
};
/// Returns the root of a tensor. Raises RuntimeError if the tensor has no history, or if the shape, dtype or device of the
/// gradient does not match. `i` is the index of the tensor, for the message. An undefined gradient stands for ones; it is
/// allowed for outputs of one element.
RL_API Root root_of(const Tensor& output, Tensor grad, size_t i);
/// Returns the edge at which the gradient of an input arrives. Raises RuntimeError if the input does not
/// require grad.
RL_API Edge input_edge(const Tensor& input, size_t i);

/// Runs the graph behind `roots`. The comment on the next function describes `inputs`.
RL_API std::vector<Tensor> run_backward(std::span<const Root> roots, std::span<const Edge> inputs,
                                        const BackwardOptions& options);

/// Runs the graph behind `outputs`, beginning with the gradients `grads`. An undefined gradient stands for ones; it is
/// allowed for outputs of one element. If `inputs` are given, only the nodes on a path to an input run. The gradients
/// of the inputs are then returned or, if accumulate_grad is true, accumulated.
RL_API std::vector<Tensor> run_backward(TensorList outputs, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options);

/// Implements tensor.backward(): accumulates gradients in the leaves.
RL_API void backward(const Tensor& output, const Tensor& grad = Tensor(), bool retain_graph = false,
                     bool create_graph = false);

/// For hooks and nodes. current_pass_id() returns the number of the pass that runs on this thread, or 0 if there is
/// none. current_pass_runs() returns whether this pass runs the given node.
RL_API uint64_t current_pass_id();
RL_API bool current_pass_runs(Node* node);
/// Registers a function that is called once when the backward pass that runs on this thread has ended. It is called
/// on the thread that started the pass, after all gradients have been accumulated. It is not called if the pass
/// raises an error. If passes are nested, it is called after the outermost pass.
RL_API void queue_callback(std::function<void()> callback);

namespace detail {
extern RL_API constinit thread_local bool parallel_branches RL_TLS_MODEL;
extern RL_API std::atomic<bool> device_threads;
}  // namespace detail
/// Whether the nodes of devices other than the CPU run on separate threads, one for each device (the default), or on
/// the caller's thread: Note [Threads of a pass]. The setting applies to the whole process. A pass uses the value that
/// the setting has when the pass begins.
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

/// Functions that a language binding provides to the engine. A thread of the engine calls `begin` first and `end` last.
/// If an exception that it caught must be thrown on another thread, it calls `carry`.
struct ThreadFunctions {
    void* (*begin)();
    void (*end)(void* state);  // not called on device threads, because they never end
    std::exception_ptr (*carry)(std::exception_ptr);
};
/// Sets the functions, which must stay valid until the process ends.
RL_API void set_thread_functions(const ThreadFunctions* functions);
/// Returns the functions that were set, or null.
const ThreadFunctions* thread_functions();

/// Attaches autograd to core: registers its stages and its per-tensor state. Importing rushlight_autograd calls this
/// function; a C++ program must call it once. Further calls do nothing.
RL_API void initialize();

}  // namespace rushlight::autograd
