// Samplers by rejection: Note [Candidates] in sampling.cpp.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Draws from the gamma distribution of rate 1. Raises RuntimeError for a shape that is not positive and finite.
void _standard_gamma(KernelContext& ctx, const View& out, const View& shapes);
/// The logarithms of such numbers.
void _standard_log_gamma(KernelContext& ctx, const View& out, const View& shapes);
/// Raises RuntimeError for a rate that is negative or not finite.
void poisson(KernelContext& ctx, const View& out, const View& rates);
/// Raises RuntimeError for a count that is not a whole number from 0 to 2^53, or a number that is not a probability.
void binomial(KernelContext& ctx, const View& out, const View& counts, const View& probs);

}  // namespace rushlight::cpu
