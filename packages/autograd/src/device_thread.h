// The threads that run the nodes of devices other than the CPU: one thread for each device.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "rushlight/device.h"

namespace rushlight::autograd {

/// A thread that runs jobs in order until the process ends.
class DeviceThread {
  public:
    using Job = std::function<void()>;

    /// Returns the thread of a device, whose index must be set. Starts the thread at the first call. Raises
    /// RuntimeError if the thread cannot be started.
    static DeviceThread& of(Device device);
    /// Returns the calling thread if it is a device thread, else null.
    static DeviceThread* current();

    Device device() const { return device_; }
    /// Adds a job to the thread's queue. `job` must not throw.
    void post(Job job);
    /// Runs the next job in the queue and returns true; returns false if the queue is empty. Called by a thread that waits
    /// inside another job.
    bool run_one();

  private:
    explicit DeviceThread(Device device) : device_(device) {}
    void main();

    const Device device_;
    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<Job> jobs_;
};

}  // namespace rushlight::autograd
