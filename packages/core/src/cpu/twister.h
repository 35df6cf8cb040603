// Random values as PyTorch draws them on the CPU: one after the other from a Mersenne twister, in the order in which the
// elements lie in memory. Value for value those of PyTorch 2.13 on processors of AMD; on Intel's its builds with MKL draw
// `exponential_` and masks of one probability (`bernoulli_(p)`, dropout) from another generator.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"
#include "rushlight/random.h"

namespace rushlight::cpu::twister {

// These functions do the same as those of the same names in cpu/random.h.
void uniform_(KernelContext& ctx, Generator& generator, const View& self, double from, double to);
void normal_(KernelContext& ctx, Generator& generator, const View& self, double mean, double std);
void exponential_(KernelContext& ctx, Generator& generator, const View& self, double lambd);
void geometric_(KernelContext& ctx, Generator& generator, const View& self, double p);
void cauchy_(KernelContext& ctx, Generator& generator, const View& self, double median, double sigma);
void log_normal_(KernelContext& ctx, Generator& generator, const View& self, double mean, double std);
void bernoulli_(KernelContext& ctx, Generator& generator, const View& self, double p);
void bernoulli(KernelContext& ctx, Generator& generator, const View& out, const View& p);
void integers_(KernelContext& ctx, Generator& generator, const View& self, int64_t low, int64_t range);
void randperm(Generator& generator, const View& out, int64_t n);
void multinomial(KernelContext& ctx, Generator& generator, const View& out, const View& input,
                 int64_t num_samples, bool replacement);

/// Draws which elements of `input` a dropout keeps, into the row-major `mask`: each with probability 1 - p.
void dropout_mask(KernelContext& ctx, Generator& generator, uint8_t* mask, const View& input, double p);

}  // namespace rushlight::cpu::twister

namespace rushlight::cpu {

struct TwisterKernels {
    // Makes normal numbers of blocks of 16 uniform ones, in place, bit for bit as PyTorch does.
    void (*normal_blocks)(float* values, int64_t blocks, float mean, float std);
};
RUSHLIGHT_KERNEL_TABLE(TwisterKernels, twister_kernels)

}  // namespace rushlight::cpu
