#include "cuda/failure.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <vector>

#include "cuda/alarm.h"
#include "cuda/driver.h"
#include "cuda/kernel_list.h"
#include "rushlight/scalar.h"

namespace rushlight {

// Used by parameters of functors. Core's definition is in another library.
void Scalar::fail_complex() const {
    cuda::fail(BackendStatus::Runtime, "a complex number cannot be converted to a real number: %g%+gj",
               to<Complex<double>>().re, to<Complex<double>>().im);
}

namespace cuda {

const HostTable* host = nullptr;

namespace {

// Note [Late errors]
// CUDA reports that work has failed, but not which work: a later call reports a fault in a kernel. So the last calls are
// recorded, and the text of an error that a later call may have reported contains the newest of them. Such a fault is
// permanent: the process can no longer use the device, and every later call reports the fault.
constexpr uint32_t kKept = 4096, kNamed = 4;
struct Recent {
    std::mutex mutex;
    DeviceCall calls[kKept];
    uint32_t count = 0;
};
Recent recent;

constexpr size_t kDevices = 128;  // the maximum number of devices: core stores a device's index in one byte
/// The words of the alarm of each device; null before its first use.
std::atomic<uint64_t*> alarms[kDevices];
std::mutex alarms_mutex;

bool is_late(cudaError_t error) {
    switch (error) {
        case cudaErrorIllegalAddress:
        case cudaErrorAssert:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorIllegalInstruction:
        case cudaErrorHardwareStackError:
        case cudaErrorECCUncorrectable: return true;
        default: return false;
    }
}

const char* said(Cause cause) {
    switch (cause) {
        case Cause::Negative: return "an element is negative, and must be at least 0";
        case Cause::FewValues: return "the mask has more true elements than there are values";
        case Cause::BadRange: return "the range of the elements is not finite";
        case Cause::UnsortedBags: return "the bag indices are not in ascending order";
        case Cause::BadProbability: return "a probability is not between 0 and 1";
        case Cause::BadWeights:
            return "the weights of a row are negative or not finite, or too few of them are above zero";
        case Cause::BadParameter: return "a parameter of a distribution is out of range";
        case Cause::BadSequence: return "a length or a label of a sequence is out of range";
        case Cause::BadPivot: return "a pivot is not a valid row number";
        case Cause::DividesByZero:
            return "an element is 0, and an integer cannot be divided by zero (ZeroDivisionError)";
        case Cause::NegativeOrNan: return "an element is negative or NaN, and must be at least 0";
        case Cause::NotFinite: return "a matrix has elements that are not finite";
        case Cause::NotConverged:
            return "the eigenvalues or singular values of a matrix were not found: the iteration does not "
                   "converge";
        case Cause::NotFullRank:
            return "a matrix does not have full rank\n"
                   "hint: pass driver='gelsy', 'gelsd' or 'gelss', which do not require full rank";
        default: return "an index is out of range";
    }
}

BackendStatus status_of(Cause cause) {
    if (cause == Cause::Index) return BackendStatus::Index;
    return cause >= Cause::NotFinite ? BackendStatus::LinAlg : BackendStatus::Runtime;
}

/// Names the newest calls, at most kNamed. An operator that queues several kernels is recorded several times, and a loop
/// may call one operator many times. Calls in succession with the same name and line are named once.
std::string recently() {
    std::vector<DeviceCall> calls;
    {
        std::lock_guard lock(recent.mutex);
        for (uint32_t i = 0; i < std::min(recent.count, kKept); ++i)
            calls.push_back(recent.calls[(recent.count - 1 - i) % kKept]);
    }
    std::vector<std::string> named;
    for (auto call = calls.begin(); call != calls.end() && named.size() < kNamed; ++call) {
        char where[200];
        host->describe(&*call, where, sizeof where);
        if (named.empty() || named.back() != where) named.emplace_back(where);
    }
    std::string text;
    for (const std::string& where : named) text += (text.empty() ? "" : ", ") + where;
    return text;
}

}  // namespace

uint32_t remember(const DeviceCall* call) {
    std::lock_guard lock(recent.mutex);
    recent.calls[recent.count % kKept] = *call;
    if (++recent.count == 0) recent.count = kKept;  // the counter has wrapped around, after 2^32 calls
    return recent.count;
}

Alarm alarm_of(const KernelContext* context) {
    std::atomic<uint64_t*>& alarm = alarms[static_cast<size_t>(context->call->device)];
    uint64_t* words = alarm.load(std::memory_order_acquire);
    if (!words) [[unlikely]] {
        std::lock_guard lock(alarms_mutex);
        words = alarm.load(std::memory_order_relaxed);
        if (!words) {
            void* memory = nullptr;
            use_device(context->call->device);
            check(driver.pin(&memory, kAlarms * sizeof(uint64_t), cudaHostAllocPortable), "pinning memory");
            words = static_cast<uint64_t*>(std::memset(memory, 0, kAlarms * sizeof(uint64_t)));
            alarm.store(words, std::memory_order_release);
        }
    }
    return {words, remember(context->call)};
}

void check_alarm(int32_t device) {
    uint64_t* const words = alarms[static_cast<size_t>(device)].load(std::memory_order_acquire);
    if (!words) return;
    uint64_t any = 0;
    for (int i = 0; i < kAlarms; ++i) any |= __atomic_load_n(words + i, __ATOMIC_RELAXED);
    if (any == 0) [[likely]]
        return;
    std::string text;
    BackendStatus status = BackendStatus::Ok;
    int count = 0;
    for (int i = 0; i < kAlarms; ++i) {
        const uint64_t given = __atomic_exchange_n(words + i, 0, __ATOMIC_RELAXED);
        if (given == 0) continue;  // another thread may have reported it
        const auto ticket = static_cast<uint32_t>(given);
        DeviceCall call = {};
        bool known;
        {
            std::lock_guard lock(recent.mutex);
            known = recent.count - ticket < kKept;
            if (known) call = recent.calls[(ticket - 1) % kKept];
        }
        char where[200] = "an earlier operator";
        if (known) host->describe(&call, where, sizeof where);
        const auto cause = static_cast<Cause>(given >> 32);
        if (count++ == 0) status = status_of(cause);
        text += (text.empty() ? "" : "\nalso ") + std::string(where) + ": " + said(cause);
    }
    if (count == kAlarms)
        text += "\nlater operators may have failed, too: at most " + std::to_string(kAlarms) + " are kept";
    if (count > 0) throw Failure{status, text};
}

void fail(BackendStatus status, const char* format, ...) {
    char text[500];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw Failure{status, text};
}

void raise(cudaError_t error, const char* what) {
    driver.last_error();  // resets the error, which the next launch would report again
    if (error == cudaErrorMemoryAllocation)
        throw Failure{BackendStatus::OutOfMemory, std::string(what) + ": the device has no memory left"};
    std::string text = std::string(what) + ": " + driver.describe(error) + " (CUDA error " +
                       std::to_string(static_cast<int>(error)) + ")";
    if (is_late(error)) {
        if (std::string calls = recently(); !calls.empty())
            text += "; the last operators queued, newest first: " + calls;
        text +=
            "\nhint: the process cannot use the device any more; set CUDA_LAUNCH_BLOCKING=1 to find the operator";
    }
    throw Failure{BackendStatus::Runtime, text};
}

const char* dtype_name(DType dtype) {
    static const char* const names[kNumDTypes] = {"bool",
                                                  "uint8",
                                                  "int8",
                                                  "int16",
                                                  "int32",
                                                  "int64",
                                                  "float16",
                                                  "bfloat16",
                                                  "float32",
                                                  "float64",
                                                  "uint16",
                                                  "uint32",
                                                  "uint64",
                                                  "complex64",
                                                  "complex128",
                                                  "float8_e4m3fn",
                                                  "float8_e5m2",
                                                  "float8_e4m3fnuz",
                                                  "float8_e5m2fnuz",
                                                  "float8_e8m0fnu"};
    const auto i = static_cast<unsigned>(dtype);
    return i < kNumDTypes ? names[i] : "an unknown dtype";
}

BackendStatus report() {
    try {
        throw;
    } catch (const Failure& failure) {
        host->set_error(failure.text.c_str());
        return failure.status;
    } catch (const std::bad_alloc&) {
        host->set_error("the host has no memory left");
        return BackendStatus::OutOfMemory;
    } catch (const std::exception& error) {
        host->set_error(error.what());
        return BackendStatus::Runtime;
    } catch (...) {
        host->set_error("an unknown error");
        return BackendStatus::Runtime;
    }
}

}  // namespace cuda
}  // namespace rushlight
