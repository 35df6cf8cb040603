// The threads that run the nodes of devices other than the CPU: one each.
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

    /// Returns the thread of a device, given with its index; starts it when it is first needed. Raises
    /// RuntimeError if the thread cannot be started.
    static DeviceThread& of(Device device);
    /// Returns the calling thread if it is a device thread, else null.
    static DeviceThread* current();

    Device device() const { return device_; }
    /// `job` does not raise.
    void post(Job job);
    /// Runs a waiting job, if there is one; for a thread that waits inside of another job.
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
