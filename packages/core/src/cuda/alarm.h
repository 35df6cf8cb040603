// How a kernel reports a bad value, such as an index that is out of range: the error is found when the host next waits, and
// the device stays usable.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "rushlight/kernel.h"

namespace rushlight::cuda {

/// The kind of error. A bad index becomes an IndexError, all others a RuntimeError.
enum class Cause : uint32_t {
    Index,
    Negative,
    FewValues,
    BadRange,
    UnsortedBags,
    BadProbability,
    BadWeights
};

/// Given to kernels that check values. `place` is host memory that the device writes; if several threads write, any one
/// of them is kept.
struct Alarm {
    uint64_t* position;
    uint32_t ticket;

#if defined(__CUDACC__) || defined(RUSHLIGHT_CUDA_ON_HOST)
    __device__ void raise(Cause cause = Cause::Index) const {
        *static_cast<volatile uint64_t*>(position) = static_cast<uint64_t>(cause) << 32 | ticket;
    }
    /// `index`, or 0 where it is out of range: nothing outside of memory is read.
    __device__ int64_t checked(int64_t index, int64_t size) const {
        if (index >= 0 && index < size) return index;
        raise();
        return 0;
    }
#endif
};

/// The alarm of a call.
Alarm alarm_of(const KernelContext* context);
/// Allocates the memory of a device's alarm.
void prepare_alarm(int32_t device);
/// To be called after a wait: raises an error that names the operator and its line if an alarm was given.
void check_alarm(int32_t device);

}  // namespace rushlight::cuda
