// Alarms: by an alarm, a kernel reports a bad value, such as an index that is out of range. The error is found when the
// host next waits, and the device stays usable.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// The kind of error. Index raises IndexError. NotFinite and the causes after it raise LinAlgError. All others raise
/// RuntimeError.
enum class Cause : uint32_t {
    Index,
    Negative,
    FewValues,
    BadRange,
    UnsortedBags,
    BadProbability,
    BadWeights,
    BadParameter,
    BadSequence,
    BadPivot,
    DividesByZero,
    NegativeOrNan,
    NotFinite,
    NotConverged,
    NotFullRank
};

/// The number of failed calls of a device that are kept until the host next waits. Together, their words fill one cache
/// line.
inline constexpr int kAlarms = 8;

/// An argument of kernels that check values: `kAlarms` words of host memory, to which the device writes. Each failed call
/// occupies one word with its first error, in the order of the errors. If two streams write at the same time, only the
/// error of one of them may be kept.
struct Alarm {
    uint64_t* words;
    uint32_t ticket;

#if defined(__CUDACC__) || defined(RUSHLIGHT_CUDA_ON_HOST)
    __device__ void raise(Cause cause = Cause::Index) const {
        auto* const kept = static_cast<volatile uint64_t*>(words);
        for (int i = 0; i < kAlarms; ++i) {
            const uint64_t found = kept[i];
            if (found == 0) kept[i] = static_cast<uint64_t>(cause) << 32 | ticket;
            if (found == 0 || static_cast<uint32_t>(found) == ticket) return;
        }
    }
    /// Returns `index` if it is in range. Otherwise raises the alarm and returns 0, so that the kernel reads no memory
    /// outside the tensor.
    __device__ int64_t checked(int64_t index, int64_t size) const {
        if (index >= 0 && index < size) return index;
        raise();
        return 0;
    }
#endif
};

/// Returns the alarm to pass to the kernels of a call. The memory for a device's alarm is allocated at the first call
/// of this function for the device, so no context is created on devices that are not used.
Alarm alarm_of(const KernelContext* context);
/// Called after the host has waited for the device. If kernels have raised the alarm, raises an error that names their
/// operators and lines, in the order of the errors.
void check_alarm(int32_t device);

}  // namespace rushlight::cuda
