// Kernels of the operators in statistics.h that select elements.
#pragma once

#include "cpu/capability.h"
#include "cpu/ordered_row_kernels.h"

namespace rushlight::cpu {

enum class Rank : uint8_t { Kth, Median, NanMedian, Mode };

// Selects the element of a rank, and its position, in each of `rows` contiguous rows of `n` elements. For Kth, the
// rank is `k`, counted from 0.
using Choose = void (*)(void* values, int64_t* indices, const void* in, int64_t rows, int64_t n, Rank rank,
                        int64_t k, void* memory);
using StatisticsKernels = OrderedRowKernels<Choose>;

RUSHLIGHT_KERNEL_TABLE(StatisticsKernels, statistics_kernels)

}  // namespace rushlight::cpu
