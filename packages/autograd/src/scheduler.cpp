#include "scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "rushlight/backend.h"
#include "rushlight/interrupt.h"
#include "rushlight/mutex.h"

// Note [Threads of a pass]
// The thread that started a pass runs the host's nodes. Every other device has a thread that exists until the process
// ends. So the work of a device is queued by one thread in one order, and a slow device does not delay other devices.
// A node belongs to the device of the gradients that arrive at it. When a pass reaches the first node of another
// device, or if it begins with parallel_branches(), a Scheduler runs the rest of the pass. It has one queue of ready
// nodes for each device, in which nodes that were recorded later come first.
//
// Sums do not depend on the order in which gradients arrive. Every gradient that arrives at a result has a number:
// its position in the order of a pass on one thread. It is added after all gradients with smaller numbers. So results
// are bit for bit the same as on one thread.
//
// A thread that works for the caller uses the caller's dispatch state, saved-tensor hook, streams and pass. After a
// node raises an exception, no further node is started; if several nodes raise, the caller receives the exception of
// the node that comes first in the order. If the caller is itself a device thread (a pass inside of a node), it also
// runs the nodes of that device, and runs the jobs of other threads while it waits. Otherwise two such threads could
// wait for each other.

// Note [Parallel branches]
// With parallel branches, several threads run the host's nodes: the caller and helpers, which live as long as the
// pass. Only one parallel region of the process can use the additional threads at a time; it holds a lease on them
// (Note [Threads] in core's parallel.cpp). Parallel branches are such a region, so helpers work only while the pass
// holds the lease. So kernels are serial while several nodes run, and use all threads while a single node runs. The
// lease is requested when a node is started while other nodes are ready and no other node runs. It is returned when
// only one node is left.
//
// A node may take only a few microseconds, so threads spin for about that time before they sleep. A thread that has run
// a node acquires the lock once, to pass on the gradients and to take the next node.

namespace rushlight::autograd {
namespace {
std::atomic<const ThreadFunctions*> functions_of_threads{nullptr};

constexpr int kSpins = 200;  // about ten microseconds

void relax() { __builtin_ia32_pause(); }
}  // namespace

void set_thread_functions(const ThreadFunctions* functions) { functions_of_threads = functions; }
const ThreadFunctions* thread_functions() { return functions_of_threads; }

class Scheduler::Carried {
  public:
    Carried(const Scheduler& from, const Queue& queue)
        : state_(dispatch_state),
          hook_(set_saved_hook(from.hook_)),
          pass_(current_pass),
          idle_(detail::idle_edges),
          streams_(current_streams()) {
        dispatch_state = from.state_;
        current_pass = &from.pass_;
        detail::idle_edges = 0;
        set_current_streams(from.pass_.streams_);
        if (queue.thread) {
            device_ = queue.thread->device();
            index_ = current_device(device_.type);
            set_current_device(device_);
        }
    }
    ~Carried() {
        if (device_.type != DeviceType::CPU) {
            device_.index = static_cast<int8_t>(index_);
            set_current_device(device_);
        }
        set_current_streams(streams_);
        detail::idle_edges = idle_;
        current_pass = pass_;
        set_saved_hook(hook_);
        dispatch_state = state_;
    }
    Carried(const Carried&) = delete;

  private:
    const DispatchState state_;
    SavedHook* const hook_;
    Pass* const pass_;
    const uint64_t idle_;
    const std::vector<StreamChoice> streams_;
    Device device_;
    int index_ = 0;
};

Scheduler::Scheduler(Pass& pass, bool branches)
    : pass_(pass), state_(dispatch_state), hook_(saved_hook()), branches_(branches), process_(getpid()) {
    spin_before_sleep(mutex_);
    first_edge_.reserve(pass.tasks_.size());
    uint32_t edges = 0;
    for (const Task& task : pass.tasks_) {
        first_edge_.push_back(edges);
        edges += static_cast<uint32_t>(task.node->edges().size());
    }
    positions_.resize(edges);
    slots_.resize(pass.grads_.size());
    number_arrivals();
    queues_.emplace_back();
}

// Numbers the gradients of each slot in the order of a pass on one thread: by descending sequence number of the
// consumer, then by edge.
void Scheduler::number_arrivals() {
    std::vector<uint32_t> order;
    order.reserve(pass_.tasks_.size());
    for (uint32_t i = 0; i < pass_.tasks_.size(); ++i)
        if (!pass_.tasks_[i].done) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return pass_.later(a, b); });
    for (uint32_t task : order) {
        std::span<Edge> edges = pass_.tasks_[task].node->edges();
        for (size_t k = 0; k < edges.size(); ++k)
            if (edges[k])
                positions_[first_edge_[task] + k] =
                    slots_[pass_.tasks_[task_of(edges[k])].first_grad + edges[k].index].arrivals++;
    }
}

void Scheduler::run() {
    {
        Lock lock(mutex_);
        try {
            for (uint32_t task : std::exchange(pass_.ready_, {})) push(task);
        } catch (...) { keep(std::current_exception(), kNone); }  // other threads may already run nodes
    }
    work(true);
    {
        Lock lock(mutex_);
        stop_ = true;
        tell();
    }
    for (std::thread& helper : helpers_) {
        if (forked()) helper.detach();
        else helper.join();
    }
    // Release all gradients here: after an error some are left, and the thread of a device may still own the
    // Scheduler.
    slots_.clear();
    if (std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(std::move(error));
}

// --- queues, under the lock ---

Scheduler::Queue& Scheduler::queue_of(uint32_t task) {
    Device device = pass_.device_of(task);
    if (!pass_.is_elsewhere(device)) return queues_.front();
    for (Queue& queue : queues_)
        if (queue.thread && queue.thread->device() == device) return queue;
    return queues_.emplace_back(Queue{&DeviceThread::of(device)});
}

void Scheduler::push(uint32_t task) {
    Queue& queue = queue_of(task);
    pass_.push(queue.ready, task);
    ++left_;
    if (queue.thread && !queue.served) {
        queue.served = true;
        queue.thread->post([self = shared_from_this(), &queue] { self->serve(queue); });
    }
}

// Returns the next node for a thread of that queue, or kNone.
uint32_t Scheduler::take(Queue& queue) {
    if (stop_ || error_ || (queue.thread ? queue.ready.empty() : !waiting_for(queue))) {
        queue.served = false;
        return kNone;
    }
    uint32_t task = pass_.pop(queue.ready);
    ++queue.running;
    if (branches_ && !queue.thread && queue.running == 1 && !lease_ && !queue.ready.empty()) borrow();
    return task;
}

void Scheduler::finish(Queue& queue) {
    --queue.running;
    --left_;
    if (!queue.thread && lease_ && queue.running + queue.ready.size() <= 1) lease_.reset();
}

// Requests a lease of all spare threads, and starts one helper for each ready node, up to the number of threads.
void Scheduler::borrow() {
    lease_.emplace();
    auto extra = static_cast<size_t>(lease_->threads() - 1);
    if (extra == 0) return lease_.reset();
    while (helpers_.size() < std::min(extra, queues_.front().ready.size())) {
        try {
            helpers_.emplace_back([this] { help(); });
        } catch (const std::system_error&) { break; }  // no more threads can be started: continue with fewer
    }
}

void Scheduler::tell() {
    changes_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
}

void Scheduler::keep(std::exception_ptr failure, uint32_t task) {
    if (error_ && (task == kNone || failed_ == kNone || pass_.later(failed_, task))) return;
    error_ = std::move(failure);
    failed_ = task;
}

// --- threads ---

// Runs the host's nodes until the pass has ended.
void Scheduler::work(bool caller) {
    uint32_t task = kNone;
    Queue& host = queues_.front();
    for (size_t done = 0;;) {
        if (task == kNone) {
            Lock lock(mutex_);
            while (!stop_ && !error_ && left_ > 0 && (task = take(host)) == kNone) wait(lock, caller);
            if (task == kNone) break;
        }
        task = run(task, host);
        if (caller && ++done % 4 == 0) check_caller();
    }
    if (!caller) return;
    // The calling thread returns last, because nodes on other threads use objects that it owns.
    Lock lock(mutex_);
    auto running = [](const Queue& queue) { return queue.running > 0; };
    while (!forked() && std::any_of(queues_.begin(), queues_.end(), running)) wait(lock, true);
}

// Runs the ready nodes of a device, on the thread of the device.
void Scheduler::serve(Queue& queue) {
    uint32_t task;
    {
        Lock lock(mutex_);
        task = take(queue);
    }
    if (task == kNone) return;  // the pass may have been destroyed
    Carried carried(*this, queue);
    while (task != kNone) task = run(task, queue);
}

void Scheduler::help() {
    const ThreadFunctions* functions = thread_functions();
    void* bindings = functions ? functions->begin() : nullptr;
    {
        Carried carried(*this, queues_.front());
        work(false);
    }
    if (functions) functions->end(bindings);
}

// Waits until something has changed, or for a limited time.
void Scheduler::wait(Lock& lock, bool caller) {
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    lock.unlock();
    auto news = [&] { return changes_.load(std::memory_order_acquire) != seen; };
    for (int i = 0; i < kSpins && !news(); ++i) relax();
    if (caller) {
        DeviceThread* here = DeviceThread::current();
        while (here && !news() && here->run_one()) {}
    }
    lock.lock();
    if (news()) return;
    if (!caller) return changed_.wait(lock);
    changed_.wait_for(lock, std::chrono::milliseconds(20));
    if (news()) return;
    lock.unlock();
    check_caller();
    lock.lock();
}

// Checks for Ctrl-C and for a fork, after which the threads would be missing. Only the calling thread does this.
void Scheduler::check_caller() {
    std::exception_ptr failure;
    try {
        check_interrupted();
        RL_CHECK(!forked(), throw_runtime,
                 "backward(): the process was forked in the middle of a backward pass, whose threads exist "
                 "only in the parent process\n"
                 "hint: do not fork inside of hooks or of the backward() of a Function");
    } catch (...) {
        failure = std::current_exception();
        if (!failure) throw;  // the interpreter ends this thread
    }
    if (!failure) return;
    Lock lock(mutex_);
    keep(std::move(failure), kNone);
}

// --- nodes ---

// Runs a node and returns the next node for this thread.
uint32_t Scheduler::run(uint32_t task, Queue& queue) {
    // Both are destroyed after the lock is released: they may be the last owners of large memory, and of
    // objects of other libraries.
    Ref<Node> hold = Ref<Node>::share(pass_.tasks_[task].node);
    std::exception_ptr failure;
    Lock lock(mutex_, std::defer_lock);
    try {
        run_node(task, queue, lock);
    } catch (...) {
        failure = std::current_exception();
        if (!failure) throw;  // the interpreter ends this thread
        if (const ThreadFunctions* functions = thread_functions()) failure = functions->carry(failure);
    }
    if (!lock.owns_lock()) lock.lock();
    if (failure) keep(std::move(failure), task);  // from here on, only the caller uses the exception
    finish(queue);
    const uint32_t next = take(queue);
    const bool over = left_ == 0 || error_;
    if (over || waiting_for(queues_.front())) tell();
    lock.unlock();
    return next;
}

// Runs a node, passes on its gradients, and runs the leaves that become ready: they are too small for a
// separate thread.
void Scheduler::run_node(uint32_t task, Queue& queue, Lock& lock) {
    Node* node = pass_.tasks_[task].node;
    std::optional<StreamScope> scope;
    if (pass_.several_streams_) [[unlikely]]
        scope.emplace(pass_.stream_of(task, pass_.device_of(task)));
    size_t n = node->edges().size();
    Pass::Results out(n);
    pass_.run_task(task, out);
    for (size_t k = 0; k < n; ++k)
        if (const Edge& edge = node->edges()[k]; edge && out[k].defined())
            pass_.wait_for(task_of(edge), out[k]);
    std::vector<uint32_t> leaves;
    lock.lock();
    for (size_t k = 0; k < n; ++k)
        if (Edge& edge = node->edges()[k])
            arrive(edge, positions_[first_edge_[task] + k], std::move(out[k]), queue, lock, leaves);
    for (uint32_t leaf : leaves) {
        if (error_) break;
        lock.unlock();
        run_node(leaf, queue, lock);  // the lock is held again afterwards
    }
}

void Scheduler::arrive(const Edge& edge, uint32_t position, Tensor grad, Queue& from, Lock& lock,
                       std::vector<uint32_t>& leaves) {
    uint32_t next = task_of(edge);
    Task& task = pass_.tasks_[next];
    Slot& slot = slots_[task.first_grad + edge.index];
    if (slot.adding ||
        position != slot.next) {  // the thread that adds the preceding gradients adds this gradient
        slot.early.emplace_back(position, std::move(grad));
        return;
    }
    slot.adding = true;
    for (;;) {
        ++slot.next;
        if (grad.defined()) {
            task.reached = true;
            Tensor& sum = pass_.grads_[task.first_grad + edge.index];
            if (sum.defined()) {
                lock.unlock();
                pass_.add_to(next, sum, std::move(grad));
                lock.lock();
            } else {
                sum = std::move(grad);
            }
        }
        if (--task.dependencies == 0) {
            if (pass_.is_leaf(next) && &queue_of(next) == &from) leaves.push_back(next);
            else push(next);
        }
        auto due = std::find_if(slot.early.begin(), slot.early.end(),
                                [&](const auto& arrival) { return arrival.first == slot.next; });
        if (due == slot.early.end()) break;
        grad = std::move(due->second);
        slot.early.erase(due);
    }
    slot.adding = false;
}

void run_on_threads(Pass& pass, bool branches) { std::make_shared<Scheduler>(pass, branches)->run(); }

}  // namespace rushlight::autograd
