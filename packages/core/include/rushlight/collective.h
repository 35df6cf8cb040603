// Collective operations between processes of one machine, over a file of memory that all of them map.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "rushlight/tensor.h"

namespace rushlight {

enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max, BitAnd, BitOr, BitXor };
enum class CollectiveKind : uint8_t {
    AllReduce,
    Reduce,
    Broadcast,
    Gather,
    AllGather,
    Scatter,
    ReduceScatter,
    AllToAll,
    Barrier
};

/// The arguments that one rank passes to a collective. A list of tensors is treated as one sequence of elements, in the
/// order of the list.
struct Collective {
    CollectiveKind kind = CollectiveKind::Barrier;
    ReduceOp op = ReduceOp::Sum;
    int root = 0;  // for Reduce, Broadcast, Gather and Scatter
    /// AllReduce, Reduce, Broadcast: tensors that are read and written. Scatter, ReduceScatter, AllToAll: one tensor
    /// for each rank. Gather, AllGather: one tensor.
    std::vector<Tensor> inputs;
    /// Gather, AllGather, AllToAll: one tensor for each rank. Scatter, ReduceScatter: one tensor. Other kinds: empty.
    std::vector<Tensor> outputs;
    /// A name for this collective, which may be empty. All ranks must pass the same name.
    std::string label;
    /// The line of the program that called the operation. Error messages show it.
    std::string where;
};

/// A collective that has been started.
class RL_API CollectiveWork {
  public:
    bool done() const;
    /// The error with which the collective ended. Null if it ended without an error or has not ended.
    std::exception_ptr error() const;
    /// Waits until the collective ends, and raises its error if it has one. Returns false if the collective has not
    /// ended after `seconds` (negative: no limit).
    bool wait(double seconds);
    /// The rank that sent the received message; -1 before the message has arrived, and for collectives.
    int source() const { return source_; }

  private:
    friend class ProcessGroup;
    void finish(std::exception_ptr error);
    Collective what_;
    // Each output that is not contiguous, and the contiguous tensor that replaces it during the collective.
    std::vector<std::pair<Tensor, Tensor>> copies_;
    std::string text_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::exception_ptr error_;
    std::atomic<int> source_ = -1;
};

struct CollectiveRegion;

/// The membership of one rank in a group of processes. The collectives of a group run one after the other in the order
/// of their calls, which must be the same on every rank. All functions may be called from any thread.
class RL_API ProcessGroup {
  public:
    /// The size of a group's file in bytes. A new file must hold zeros.
    static size_t file_bytes(int size);
    /// Maps the file and joins the group as rank `rank`. The descriptor may be closed afterwards.
    ProcessGroup(int fd, int rank, int size, double timeout);
    ~ProcessGroup();
    ProcessGroup(const ProcessGroup&) = delete;

    /// Returns false in a process that was forked from the process that joined the group. A forked process must neither
    /// use nor destroy the object, because the object's threads belong to the parent process.
    bool is_member() const;
    int rank() const { return rank_; }
    int size() const { return size_; }
    double timeout() const { return timeout_; }
    void set_timeout(double seconds) { timeout_ = seconds; }

    /// Runs a collective, or with `async` queues it for the group's thread.
    std::shared_ptr<CollectiveWork> submit(Collective what, bool async);
    /// Starts to send a tensor to a rank, or to receive a tensor from a rank (negative: from any rank). Messages with
    /// the same tag between the same two ranks arrive in the order in which they were sent. A send is done when its
    /// last elements are in the group's memory.
    std::shared_ptr<CollectiveWork> send(const Tensor& tensor, int to, int tag, const std::string& where);
    std::shared_ptr<CollectiveWork> receive(const Tensor& tensor, int from, int tag,
                                            const std::string& where);
    /// Makes every waiting and every later collective on all ranks raise an error with the text `why`.
    void abort(const std::string& why);
    /// Leaves the group. Waits for queued operations unless the group is broken. Other ranks that still wait for this
    /// rank raise an error.
    void close();

  private:
    class Messages;
    std::shared_ptr<CollectiveWork> post(const Tensor& tensor, int peer, int tag, const std::string& where,
                                         bool sends);
    void check_member() const;
    void prepare(CollectiveWork& work) const;
    void prepare_message(CollectiveWork& work, const Tensor& tensor, int peer, int tag, bool sends) const;
    void run(CollectiveWork& work);
    void transfer(CollectiveWork& work);
    void work();
    void wait_for(int rank, uint32_t step, const CollectiveWork& work);
    [[noreturn]] void fail(const std::string& why);
    void raise_if_broken() const;
    template <class Write, class Read>
    void exchange(const CollectiveWork& work, Write write, Read read);
    void compare_texts();

    const int rank_, size_;
    std::atomic<double> timeout_;
    const int process_;
    CollectiveRegion* region_ = nullptr;
    uint32_t step_ = 0;
    bool first_ = false;  // whether the next step is the first step of its collective
    bool intact_ = false;  // whether all ranks have made the same steps when the error is raised
    std::chrono::steady_clock::time_point deadline_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<CollectiveWork>> queue_;
    bool busy_ = false, closed_ = false;
    std::thread thread_;
    std::unique_ptr<Messages> messages_;  // null before the first message
};

}  // namespace rushlight
