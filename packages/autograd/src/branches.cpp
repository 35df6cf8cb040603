// Passes that run independent branches of a graph on several threads.
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>
#include <thread>

#include "pass.h"
#include "rushlight/autograd/saved_hook.h"
#include "rushlight/interrupt.h"
#include "rushlight/parallel.h"

// Note [Parallel branches]
// One queue of ready nodes, later ones first, from which the calling thread and its helpers take. The threads of the
// process are lent to one region at a time (Note [Threads] in core's parallel.cpp), and branches are such a region: helpers
// work only while the pass holds the lease, so that kernels are serial while several nodes run, and have all threads while
// a single one does. The lease is asked for when a node is taken and others are ready and nothing else runs, and given
// back when one is left.
//
// Sums do not depend on who comes first: every gradient that arrives at a result has a place in the order in which a pass
// on one thread would have brought it, waits for those before it, and is added then. So the bits are the same.
//
// A helper carries the caller's dispatch state, saved-tensor hook and pass. When a node raises no new one is begun; the
// exception of the node that comes first in order is the caller's.

namespace rushlight::autograd {
namespace {
std::atomic<const ThreadFunctions*> thread_functions{nullptr};
}

void set_thread_functions(const ThreadFunctions* functions) { thread_functions = functions; }

class Branches {
  public:
    explicit Branches(Pass& pass) : pass_(pass), state_(dispatch_state), hook_(saved_hook()) {
        first_edge_.reserve(pass.tasks_.size());
        uint32_t edges = 0;
        for (const Task& task : pass.tasks_) {
            first_edge_.push_back(edges);
            edges += static_cast<uint32_t>(task.node->edges().size());
        }
        places_.resize(edges);
        slots_.resize(pass.grads_.size());
        number_arrivals();
    }

    void run() {
        {
            Lock lock(mutex_);
            work(lock, true);
            stop_ = true;
        }
        changed_.notify_all();
        for (std::thread& helper : helpers_) helper.join();
        if (error_) std::rethrow_exception(error_);
    }

  private:
    using Lock = std::unique_lock<std::mutex>;

    // What has arrived at one result of a node, and is not added yet.
    struct Slot {
        uint32_t arrivals = 0;  // in all
        uint32_t next = 0;      // the first that is not added
        bool adding = false;
        std::vector<std::pair<uint32_t, Tensor>> early;
    };

    // In the order of a pass on one thread: consumers by descending sequence, their edges from the first.
    void number_arrivals() {
        std::vector<uint32_t> order(pass_.tasks_.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return pass_.later(a, b); });
        for (uint32_t task : order) {
            std::span<Edge> edges = pass_.tasks_[task].node->edges();
            for (size_t k = 0; k < edges.size(); ++k)
                if (edges[k]) places_[first_edge_[task] + k] = slots_[slot_of(edges[k])].arrivals++;
        }
    }
    uint32_t task_of(const Edge& edge) const { return pass_.table_.find(edge.node.get(), pass_.tasks_); }
    size_t slot_of(const Edge& edge) const { return pass_.tasks_[task_of(edge)].first_grad + edge.index; }

    // Takes nodes until nothing is left to do.
    void work(Lock& lock, bool caller) {
        for (;;) {
            if (stop_ || error_) break;
            if (pass_.ready_.empty() && running_ == 0) break;
            if (pass_.ready_.empty() || (running_ > 0 && !lease_)) {
                wait(lock, caller);
                continue;
            }
            uint32_t task = pass_.pop();
            if (running_++ == 0 && !lease_ && !pass_.ready_.empty()) borrow();
            lock.unlock();
            std::exception_ptr failure = run_guarded(task, lock);  // comes back locked
            --running_;
            if (failure) fail(task, failure);
            if (lease_ && running_ + pass_.ready_.size() <= 1) lease_.reset();
            changed_.notify_all();
            if (caller && !error_) interrupted(lock);
        }
        // The caller leaves last: helpers' nodes use what it owns.
        while (caller && running_ > 0) changed_.wait(lock);
        changed_.notify_all();
    }

    void wait(Lock& lock, bool caller) {
        if (!caller) return changed_.wait(lock);
        changed_.wait_for(lock, std::chrono::milliseconds(20));
        interrupted(lock);
    }

    // Ctrl-C is for the calling thread.
    void interrupted(Lock& lock) {
        lock.unlock();
        std::exception_ptr failure;
        try {
            check_interrupted();
        } catch (abi::__forced_unwind&) { throw; } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (failure && !error_) error_ = failure;
    }

    void fail(uint32_t task, std::exception_ptr failure) {
        if (error_ && pass_.later(failed_, task)) return;
        error_ = failure;
        failed_ = task;
    }

    // Asks for all spare threads, and starts as many helpers as there are nodes for.
    void borrow() {
        lease_.emplace();
        auto extra = static_cast<size_t>(lease_->threads() - 1);
        if (extra == 0) return lease_.reset();
        while (helpers_.size() < std::min(extra, pass_.ready_.size())) {
            try {
                helpers_.emplace_back([this] { help(); });
            } catch (const std::system_error&) { break; }  // no more threads: these must do
        }
        changed_.notify_all();
    }

    void help() {
        const ThreadFunctions* functions = thread_functions;
        void* bindings = functions ? functions->begin() : nullptr;
        dispatch_state = state_;
        set_saved_hook(hook_);
        current_pass = &pass_;
        {
            Lock lock(mutex_);
            work(lock, false);
        }
        current_pass = nullptr;
        set_saved_hook(nullptr);
        if (functions) functions->end(bindings);
    }

    // Runs a node, hands on its gradients, and runs the leaves that this makes ready: they are not worth a thread.
    std::exception_ptr run_guarded(uint32_t task, Lock& lock) {
        try {
            run_one(task, lock);
        } catch (abi::__forced_unwind&) {
            throw;  // the thread is being ended by Python's interpreter, which has come to its own end
        } catch (...) {
            std::exception_ptr failure = std::current_exception();
            const ThreadFunctions* functions = thread_functions;
            if (functions) failure = functions->carry(failure);
            if (!lock.owns_lock()) lock.lock();
            return failure;
        }
        if (!lock.owns_lock()) lock.lock();
        return nullptr;
    }

    void run_one(uint32_t task, Lock& lock) {
        Node* node = pass_.tasks_[task].node;
        Ref<Node> hold = Ref<Node>::share(node);
        size_t n = node->edges().size();
        Pass::Results out(n);
        pass_.run_task(task, out);
        std::vector<uint32_t> leaves;
        lock.lock();
        for (size_t k = 0; k < n; ++k)
            if (Edge& edge = node->edges()[k])
                arrive(edge, places_[first_edge_[task] + k], std::move(out[k]), lock, leaves);
        lock.unlock();
        for (uint32_t leaf : leaves) run_one(leaf, lock);
    }

    void arrive(const Edge& edge, uint32_t place, Tensor grad, Lock& lock, std::vector<uint32_t>& leaves) {
        uint32_t next = task_of(edge);
        Task& task = pass_.tasks_[next];
        Slot& slot = slots_[task.first_grad + edge.index];
        slot.early.emplace_back(place, std::move(grad));
        if (slot.adding) return;  // whoever adds now goes on with this one
        slot.adding = true;
        for (;;) {
            auto due = std::find_if(slot.early.begin(), slot.early.end(),
                                    [&](const auto& arrival) { return arrival.first == slot.next; });
            if (due == slot.early.end()) break;
            Tensor one = std::move(due->second);
            slot.early.erase(due);
            ++slot.next;
            if (one.defined()) {
                task.reached = true;
                Tensor& sum = pass_.grads_[task.first_grad + edge.index];
                if (sum.defined()) {
                    lock.unlock();
                    pass_.add_to(sum, std::move(one));
                    lock.lock();
                } else {
                    sum = std::move(one);
                }
            }
            if (--task.dependencies > 0) continue;
            if (pass_.is_leaf(next)) leaves.push_back(next);
            else pass_.push(next);
        }
        slot.adding = false;
    }

    Pass& pass_;
    const DispatchState state_;
    SavedHook* const hook_;
    std::vector<uint32_t> first_edge_;  // of a task in places_
    std::vector<uint32_t> places_;  // of each edge among the arrivals at its slot
    std::vector<Slot> slots_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::thread> helpers_;
    std::optional<ThreadLease> lease_;
    size_t running_ = 0;
    bool stop_ = false;
    std::exception_ptr error_;
    uint32_t failed_ = 0;
};

void run_branches(Pass& pass) { Branches(pass).run(); }

}  // namespace rushlight::autograd
