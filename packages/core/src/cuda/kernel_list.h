// The plug-in's kernels by the names of operators.
#pragma once

#include <cstdint>
#include <span>

#include "rushlight/backend.h"

namespace rushlight::cuda {

struct NamedKernel {
    const char* name;
    BackendKernel kernel;
};
struct NamedSchema {
    const char* name;
    uint64_t hash;
};

/// Pointwise operators and reductions: generated.
extern const std::span<const NamedKernel> loop_kernels;
/// The schemas of all operators that this plug-in was built for: generated.
extern const std::span<const NamedSchema> schemas;
/// Every other kernel.
extern const std::span<const NamedKernel> other_kernels;

/// Null where there is none, or `schema_hash` is another schema's. Shared kernels have hash 0.
BackendKernel find_kernel(const char* name, uint64_t schema_hash, KernelPart part);

/// The lowest compute capability that kernels are compiled for, as 90 of 9.0.
extern const int kOldestCapability;

/// Makes a device the thread's current one, which launches go to.
void use_device(int32_t device);

}  // namespace rushlight::cuda
