// Hashes of elements.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// The exclusive or along `dims`, all where there are none, of the bits of every element: of floating numbers as float64, of others
/// in 64 bits, so that equal numbers of different dtypes get equal hashes.
void hash_tensor(KernelContext& ctx, const View& out, const View& input, Ints dims);

}  // namespace rushlight::cpu
