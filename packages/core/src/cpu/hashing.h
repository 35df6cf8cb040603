// Hashing of a tensor's elements.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Computes the exclusive or (XOR) of the bits of the elements along `dims`, or along all dimensions if `dims` is
/// empty. Floating-point numbers are converted to float64 and other numbers to 64-bit integers, so that equal numbers
/// of different dtypes have equal hashes.
void hash_tensor(KernelContext& ctx, const View& out, const View& input, Ints dims);

}  // namespace rushlight::cpu
