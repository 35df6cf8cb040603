// Divides the rows of an OrderedRowKernels kernel among threads.
#pragma once

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/ordered_row_kernels.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {

/// Divides the rows among threads, and calls body(begin, end, memory) for each range [begin, end) of rows. `memory` is
/// scratch memory for this call.
template <class Loop, class Body>
void each_part_of_rows(KernelContext& ctx, const OrderedRowKernels<Loop>& kernels, DType dtype, int64_t rows,
                       int64_t n, Body body) {
    constexpr int64_t kWork = 1 << 12;  // minimum number of elements per thread
    const int64_t parts = std::clamp<int64_t>(rows / std::max<int64_t>(1, kWork / n), 1, num_threads()),
                  bytes = (kernels.memory(n, dtype) + 63) / 64 * 64;
    char* memory = scratch<char>(ctx, parts * bytes);
    parallel_chunks(parts,
                    [&](int64_t p) { body(rows * p / parts, rows * (p + 1) / parts, memory + p * bytes); });
}

}  // namespace rushlight::cpu
