// Operators that fill tensors of any strides with random values, which Note [Random values] in rushlight/philox.h
// defines. float16 and bfloat16 are drawn as float32 and integers as int64; they are then converted.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Converts row-major values of dtype `dtype` to the dtype of `self`, and writes them to `self`.
void spread(const View& self, const void* values, DType dtype);

/// Writes values that are uniform in [from, to).
void uniform_(KernelContext& ctx, const View& self, double from, double to);
void normal_(KernelContext& ctx, const View& self, double mean, double std);
/// Writes exponentially distributed values of rate `lambd`.
void exponential_(KernelContext& ctx, const View& self, double lambd);
/// Writes numbers of the geometric distribution: the number of independent trials up to and including the first
/// success, where each trial succeeds with probability p.
void geometric_(KernelContext& ctx, const View& self, double p);
void cauchy_(KernelContext& ctx, const View& self, double median, double sigma);
/// Writes random numbers whose natural logarithms are normally distributed.
void log_normal_(KernelContext& ctx, const View& self, double mean, double std);
/// Writes 1 with probability p, else 0.
void bernoulli_(KernelContext& ctx, const View& self, double p);
/// Writes 1 or 0 to each element. The probability of 1 is the element of `p` at the same position.
void bernoulli(KernelContext& ctx, const View& out, const View& p);
/// Writes integers that are uniform in {low, ..., low + range - 1}. A range of 0 stands for 2^64.
void integers_(KernelContext& ctx, const View& self, int64_t low, int64_t range);
/// Writes a random permutation of 0 .. n-1 (Fisher-Yates shuffle; R. Durstenfeld, "Algorithm 235", 1964).
void randperm(KernelContext& ctx, const View& out, int64_t n);
/// Writes random indices to out (rows..., num_samples). The indices of each row are drawn with the weights in the same
/// row of `input`.
void multinomial(KernelContext& ctx, const View& out, const View& input, int64_t num_samples,
                 bool replacement);

/// Writes a dropout mask: each element of `out` is true with probability 1 - p.
void dropout_mask(KernelContext& ctx, const View& out, const View& input, int64_t columns, double p);
/// Draws a dropout mask and computes out = input / (1 - p) where the mask is true, else 0. The mask is written to
/// `mask` unless `mask` is undefined.
void dropout(KernelContext& ctx, const View& out, const View& mask, const View& input, double p);

}  // namespace rushlight::cpu
