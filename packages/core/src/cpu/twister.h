// Random values drawn as PyTorch draws them on the CPU: one after the other from a Mersenne twister, in the order
// of the elements in memory. The values equal the values that PyTorch 2.13 draws on AMD processors. On Intel
// processors, PyTorch's builds with MKL use another generator for `exponential_` and for masks of one probability
// (`bernoulli_(p)`, dropout).
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"
#include "rushlight/random.h"

namespace rushlight::cpu::twister {

// These functions implement the functions of the same names in cpu/random.h.
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

/// Draws a dropout mask for `input` and writes it to the row-major `mask`. Each element is kept with probability
/// 1 - p.
void dropout_mask(KernelContext& ctx, Generator& generator, uint8_t* mask, const View& input, double p);

}  // namespace rushlight::cpu::twister

namespace rushlight::cpu {

struct TwisterKernels {
    // Transforms blocks of 16 uniform numbers to normal numbers in place. The results equal PyTorch's bit for bit.
    void (*normal_blocks)(float* values, int64_t blocks, float mean, float std);
};
RUSHLIGHT_KERNEL_TABLE(TwisterKernels, twister_kernels)

}  // namespace rushlight::cpu
