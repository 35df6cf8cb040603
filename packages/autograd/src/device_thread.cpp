#include "device_thread.h"

#include <pthread.h>

#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "rushlight/autograd/engine.h"
#include "rushlight/error.h"

namespace rushlight::autograd {

namespace {

// Never destroyed, because threads still wait on its condition variables when the process ends.
struct Registry {
    std::mutex mutex;
    std::vector<DeviceThread*> threads;
};
Registry& registry() {
    static Registry* made = [] {
        // A forked child process has none of the threads, and drops their jobs: the parent runs them.
        pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                       [] {
                           registry().threads.clear();
                           registry().mutex.unlock();
                       });
        return new Registry;
    }();
    return *made;
}

thread_local DeviceThread* this_thread = nullptr;

}  // namespace

DeviceThread* DeviceThread::current() { return this_thread; }

DeviceThread& DeviceThread::of(Device device) {
    std::lock_guard lock(registry().mutex);
    for (DeviceThread* thread : registry().threads)
        if (thread->device_ == device) return *thread;
    std::unique_ptr<DeviceThread> made(new DeviceThread(device));
    try {
        std::thread([thread = made.get()] { thread->main(); }).detach();
    } catch (const std::system_error& error) {
        throw_runtime(
            "backward(): the thread of %s cannot be started: %s\n"
            "hint: call autograd.set_multithreading_enabled(False) to run backward() in the calling thread",
            name(device).c_str(), error.what());
    }
    registry().threads.push_back(made.get());
    return *made.release();
}

void DeviceThread::post(Job job) {
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    posted_.notify_one();
}

bool DeviceThread::run_one() {
    std::unique_lock lock(mutex_);
    if (jobs_.empty()) return false;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    return true;
}

void DeviceThread::main() {
    this_thread = this;
    if (const ThreadFunctions* functions = thread_functions()) functions->begin();  // never ended
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            posted_.wait(lock, [this] { return !jobs_.empty(); });
        }
        run_one();
    }
}

}  // namespace rushlight::autograd
