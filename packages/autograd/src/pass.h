// One backward pass: its nodes, their order, and the gradients that have arrived at them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "rushlight/autograd/engine.h"
#include "rushlight/backend.h"

namespace rushlight::autograd {

// The state of a node in one backward pass.
struct Task {
    Node* node;
    uint32_t dependencies = 0;  // number of edges whose gradients have not arrived yet
    uint32_t first_grad;        // index of its first gradient in Pass::grads_
    bool wanted = true;         // whether it leads to an input; true if no inputs were passed
    bool captured = false;      // whether it is an input
    bool reached = false;       // whether it is a root or has received a gradient
    bool done = false;
    std::unique_ptr<ActivationMask> mask;  // the gradient has yet to be multiplied by it: Note [Masks]
};

// A hash table with open addressing that maps a node to the number of its task. Entries are never removed.
class TaskTable {
  public:
    TaskTable() : slots_(kInitial, kEmpty) {}

    // Returns the number of the node's task. If the node is not in the table, inserts it with the number `next`.
    uint32_t find_or_insert(Node* node, const std::vector<Task>& tasks, uint32_t next) {
        if (2 * (tasks.size() + 1) > slots_.size()) grow(tasks);
        size_t at = hash(node) & (slots_.size() - 1);
        while (slots_[at] != kEmpty) {
            if (tasks[slots_[at]].node == node) return slots_[at];
            at = (at + 1) & (slots_.size() - 1);
        }
        slots_[at] = next;
        return next;
    }
    uint32_t find(Node* node, const std::vector<Task>& tasks) const {
        size_t at = hash(node) & (slots_.size() - 1);
        while (slots_[at] != kEmpty && tasks[slots_[at]].node != node) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    static constexpr uint32_t kEmpty = ~0u;

  private:
    static constexpr size_t kInitial = 64;
    static size_t hash(Node* node) {
        return (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9e3779b97f4a7c15ull >> 20;
    }
    void grow(const std::vector<Task>& tasks) {
        std::vector<uint32_t> fresh(slots_.size() * 4, kEmpty);
        for (uint32_t i = 0; i < tasks.size(); ++i) {
            size_t at = hash(tasks[i].node) & (fresh.size() - 1);
            while (fresh[at] != kEmpty) at = (at + 1) & (fresh.size() - 1);
            fresh[at] = i;
        }
        slots_.swap(fresh);
    }
    std::vector<uint32_t> slots_;
};

class Pass {
  public:
    explicit Pass(const BackwardOptions& options);
    ~Pass();

    void add_root(const Edge& edge, Tensor grad);
    // Finds all nodes behind the roots and counts the gradients that each node will receive.
    void discover();
    // Marks the nodes that lead to no input, which do not run. Relies on consumers having greater sequence numbers
    // than their producers.
    void restrict_to(std::span<const Edge> inputs);
    void run();
    // Makes the caller's streams wait for the other streams on which nodes ran.
    void join_streams();
    std::vector<Tensor> take_captures();

    bool runs(Node* node) const;
    uint64_t id() const { return id_; }
    Pass* outer() const { return outer_; }
    // May be called on any thread that works for the pass.
    void queue_callback(std::function<void()> callback);
    // Called after the pass has ended without an error, on the thread that started it.
    void run_callbacks();

  private:
    friend class Scheduler;

    struct Capture {
        uint32_t task;
        uint32_t index;
        Tensor grad;
    };
    // Memory for the gradients of a node's arguments, without an allocation if there are few.
    class Results {
      public:
        explicit Results(size_t n) : n_(n) {
            if (n > 4) more_.resize(n);
        }
        operator std::span<Tensor>() { return {n_ > 4 ? more_.data() : few_, n_}; }
        Tensor& operator[](size_t i) { return n_ > 4 ? more_[i] : few_[i]; }

      private:
        size_t n_;
        Tensor few_[4];
        std::vector<Tensor> more_;
    };

    // The order of ready nodes. Accumulators have rank 0, so that they run as soon as possible and free the gradients
    // that have arrived at them.
    static uint64_t rank(const Task& t) { return t.node->edges().empty() ? 0 : t.node->sequence(); }
    bool is_leaf(uint32_t task) const { return tasks_[task].node->edges().empty(); }
    bool later(uint32_t a, uint32_t b) const;
    void push(std::vector<uint32_t>& queue, uint32_t task) const;
    uint32_t pop(std::vector<uint32_t>& queue) const;
    // Returns the device of the gradients that have arrived at a node; the CPU if there are none.
    Device device_of(uint32_t task) const;
    // Whether another thread runs the nodes of a device.
    bool is_elsewhere(Device device) const {
        return device.type != DeviceType::CPU && device.type != DeviceType::Meta && device_threads_ &&
               device != home_;
    }
    uint32_t task_of(Node* node);
    // The stream of a device on which a node runs: Note [Streams of nodes], in pass.cpp.
    StreamChoice stream_of(uint32_t task, Device device) const;
    void* callers_stream(Device device) const;
    // Makes the stream of a node wait for a gradient that was computed on this thread's current stream.
    void wait_for(uint32_t task, const Tensor& grad);
    void deliver(uint32_t task, uint32_t index, Tensor grad);
    void add_to(uint32_t task, Tensor& slot, Tensor grad) const;
    // Runs the hooks and the node of a task. `out` is left empty if the node does not run.
    void run_task(uint32_t task, std::span<Tensor> out);
    void execute(uint32_t task);
    void run_pre_hooks(Node* node, Node::Hooks* hooks, std::span<Tensor> grads);
    void apply(uint32_t task, std::span<Tensor> grads, std::span<Tensor> out);
    bool hand_on_mask(uint32_t task, std::span<Tensor> grads, std::span<Tensor> out);
    uint64_t idle_edges(uint32_t task) const;
    void capture(uint32_t at, std::span<Tensor> grads);

    const BackwardOptions& options_;
    std::vector<Task> tasks_;
    std::vector<Tensor> grads_;
    std::vector<uint32_t> ready_;
    std::vector<Ref<Node>> roots_;
    std::vector<Capture> captures_;
    TaskTable table_;
    uint64_t executed_ = 0;
    bool restricted_ = false;
    bool masks_handed_on_ = false;
    uint64_t id_;
    Device home_;  // nodes of this device and of the CPU run on the calling thread
    const bool device_threads_;
    const bool several_streams_;               // whether streams other than default ones have been used
    const std::vector<StreamChoice> streams_;  // the caller's current streams
    std::mutex mutex_;                          // guards the two lists below
    std::vector<StreamChoice> joined_streams_;  // other streams on which nodes ran
    std::vector<std::function<void()>> callbacks_;
    Pass* outer_ = nullptr;  // the pass on this thread whose hook or node runs this pass
};

// The pass for which this thread works. Set by Pass::run() and on the threads that help it.
extern constinit thread_local Pass* current_pass RL_TLS_MODEL;

// Makes a stream the current one of its device for a scope.
class StreamScope {
  public:
    explicit StreamScope(StreamChoice choice)
        : device_(choice.device), before_(current_stream(device_)), changed_(choice.stream != before_) {
        if (changed_) set_current_stream(device_, choice.stream);
    }
    ~StreamScope() {
        if (changed_) set_current_stream(device_, before_);
    }
    StreamScope(const StreamScope&) = delete;

  private:
    const Device device_;
    void* const before_;
    const bool changed_;
};

// Runs the rest of a pass on several threads: Note [Threads of a pass], in scheduler.cpp.
void run_on_threads(Pass& pass, bool branches);

}  // namespace rushlight::autograd
