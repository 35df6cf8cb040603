// The threads that run the nodes of devices other than the CPU: one each.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "rushlight/device.h"

namespace rushlight::autograd {

/// A thread that does what it is given, in turn, until the process ends.
class DeviceThread {
  public:
    using Job = std::function<void()>;

    /// The thread of a device (whose index is given), started when it is first needed. RuntimeError where it cannot be.
    static DeviceThread& of(Device device);
    /// The one that the calling thread is, or null.
    static DeviceThread* current();

    Device device() const { return device_; }
    /// `job` does not raise.
    void post(Job job);
    /// Does a job that waits, if there is one: for this thread while it waits inside of another.
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
