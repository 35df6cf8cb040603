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
    NotFinite,
    NotConverged,
    NotFullRank
};

/// An argument of kernels that check values: a place in memory to which a kernel writes the first error. `position` is
/// host memory that the device writes. Only the first error is kept, because later errors may be consequences of it. If
/// several threads write at the same time, the error of one of them is kept.
struct Alarm {
    uint64_t* position;
    uint32_t ticket;

#if defined(__CUDACC__) || defined(RUSHLIGHT_CUDA_ON_HOST)
    __device__ void raise(Cause cause = Cause::Index) const {
        auto* const kept = static_cast<volatile uint64_t*>(position);
        if (*kept == 0) *kept = static_cast<uint64_t>(cause) << 32 | ticket;
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
/// Called after the host has waited for the device. If a kernel has raised the alarm, raises an error that names the
/// operator and its line.
void check_alarm(int32_t device);

}  // namespace rushlight::cuda
