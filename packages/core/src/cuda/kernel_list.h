// The plug-in's kernels by the names of the operators.
#pragma once

#include <cstdint>
#include <span>

#include "rushlight/backend.h"

namespace rushlight::cuda {

struct NamedKernel {
    const char* name;
    BackendKernel kernel;
    uint64_t lacks = 0;  // dtypes, as bits, that the schema allows and the kernel does not support
};
struct NamedSchema {
    const char* name;
    uint64_t hash;
};

/// Pointwise operators and reductions. Generated.
extern const std::span<const NamedKernel> loop_kernels;
/// The schemas of all operators for which this plug-in was built. Generated.
extern const std::span<const NamedSchema> schemas;
/// All other kernels.
extern const std::span<const NamedKernel> other_kernels;

/// Returns null if there is no kernel, or if it was built for a schema with another hash. The hash of shared kernels is
/// 0.
BackendKernel find_kernel(const char* name, uint64_t schema_hash, KernelPart part);

/// Returns the dtypes that the kernel of an operator does not support: see Backend::lacks.
uint64_t lacked_by_kernel(const char* name);

/// The lowest compute capability for which kernels are compiled, for example 90 for 9.0.
extern const int kOldestCapability;

/// Makes a device the thread's current device, on which kernels are launched.
void use_device(int32_t device);

}  // namespace rushlight::cuda
