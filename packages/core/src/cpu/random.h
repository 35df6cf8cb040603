// Random values written over tensors of any strides: Note [Random values] in rushlight/philox.h defines them. float16 and
// bfloat16 are drawn as float32; integers take the bits as they come.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Writes row-major values of dtype `dtype` over `self`, converted.
void spread(const View& self, const void* values, DType dtype);

/// Uniform in [from, to).
void uniform_(KernelContext& ctx, const View& self, double from, double to);
void normal_(KernelContext& ctx, const View& self, double mean, double std);
/// Of rate `lambd`.
void exponential_(KernelContext& ctx, const View& self, double lambd);
/// Trials up to the first success, each of probability p.
void geometric_(KernelContext& ctx, const View& self, double p);
void cauchy_(KernelContext& ctx, const View& self, double median, double sigma);
/// e to the power of normally distributed numbers.
void log_normal_(KernelContext& ctx, const View& self, double mean, double std);
/// 1 with probability p, else 0.
void bernoulli_(KernelContext& ctx, const View& self, double p);
/// 1 with the probability that `p` has in the same position.
void bernoulli(KernelContext& ctx, const View& out, const View& p);
/// Uniform in {low, ..., low + range - 1}; range 0 stands for 2^64.
void integers_(KernelContext& ctx, const View& self, int64_t low, int64_t range);
/// A permutation of 0 .. n-1: Fisher and Yates, by R. Durstenfeld, "Algorithm 235", 1964.
void randperm(KernelContext& ctx, const View& out, int64_t n);
/// out (rows..., num_samples): indices drawn with the weights of the rows of `input`.
void multinomial(KernelContext& ctx, const View& out, const View& input, int64_t num_samples,
                 bool replacement);

/// Writes a dropout mask: each element of `out` is true with probability 1 - p.
void dropout_mask(KernelContext& ctx, const View& out, const View& input, int64_t columns, double p);
/// out = input / (1 - p) where mask, which is drawn here and may be undefined, is true; else 0.
void dropout(KernelContext& ctx, const View& out, const View& mask, const View& input, double p);

}  // namespace rushlight::cpu
