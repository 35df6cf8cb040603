// Runs the rest of a pass on several threads: Note [Threads of a pass], in scheduler.cpp.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "device_thread.h"
#include "pass.h"
#include "rushlight/autograd/saved_hook.h"
#include "rushlight/dispatch.h"
#include "rushlight/parallel.h"

namespace rushlight::autograd {

class Scheduler : public std::enable_shared_from_this<Scheduler> {
  public:
    /// `branches`: whether the host's nodes may run on several threads.
    Scheduler(Pass& pass, bool branches);
    /// Called on the thread that runs the pass. If nodes fail, throws the exception of the node that comes first in a
    /// pass on one thread.
    void run();

  private:
    using Lock = std::unique_lock<std::mutex>;
    static constexpr uint32_t kNone = ~0u;

    // The ready nodes of the host or of a device.
    struct Queue {
        DeviceThread* thread = nullptr;  // null: the calling thread
        std::vector<uint32_t> ready = {};
        size_t running = 0;
        bool served = false;  // the thread was notified of work
    };
    // The gradients that have arrived at one result of a node.
    struct Slot {
        uint32_t arrivals = 0;  // total number of gradients that will arrive
        uint32_t next = 0;      // number of the next gradient to add
        bool adding = false;
        std::vector<std::pair<uint32_t, Tensor>> early;  // gradients that wait for others, with their numbers
    };
    // Sets the caller's state on a thread that works for the caller.
    class Carried;

    void number_arrivals();
    uint32_t task_of(const Edge& edge) const { return pass_.table_.find(edge.node.get(), pass_.tasks_); }
    Queue& queue_of(uint32_t task);
    void push(uint32_t task);
    uint32_t take(Queue& queue);
    void finish(Queue& queue);
    bool waiting_for(const Queue& host) const { return !host.ready.empty() && (host.running == 0 || lease_); }

    void work(bool caller);
    void serve(Queue& queue);
    void help();
    void borrow();
    void wait(Lock& lock, bool caller);
    void tell();
    void check_caller();
    bool forked() const { return getpid() != process_; }
    void keep(std::exception_ptr failure, uint32_t task);

    uint32_t run(uint32_t task, Queue& queue);
    void run_node(uint32_t task, Queue& queue, Lock& lock);
    void arrive(const Edge& edge, uint32_t position, Tensor grad, Queue& from, Lock& lock,
                std::vector<uint32_t>& leaves);

    Pass& pass_;
    const DispatchState state_;
    SavedHook* const hook_;
    const bool branches_;
    const int process_;
    std::vector<uint32_t> first_edge_;  // for each task, the index of its first edge in positions_
    std::vector<uint32_t> positions_;  // for each edge, the number of its gradient in the slot
    std::vector<Slot> slots_;

    std::mutex mutex_;  // guards all members below, the slots and the pass's tasks
    std::condition_variable changed_;
    std::atomic<uint32_t> changes_{0};
    std::deque<Queue> queues_;  // the first queue is for the host
    size_t left_ = 0;  // number of nodes that are ready or running
    std::vector<std::thread> helpers_;
    std::optional<ThreadLease> lease_;
    bool stop_ = false;
    std::exception_ptr error_;
    uint32_t failed_ = kNone;
};

}  // namespace rushlight::autograd
