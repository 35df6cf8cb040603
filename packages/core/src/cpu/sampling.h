// Random samplers that use rejection: Note [Candidates] in sampling.cpp.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Draws numbers from the gamma distribution of rate 1. Raises RuntimeError for a shape parameter that is not positive
/// and finite.
void _standard_gamma(KernelContext& ctx, const View& out, const View& shapes);
/// Draws numbers from the gamma distribution like _standard_gamma, but returns their logarithms.
void _standard_log_gamma(KernelContext& ctx, const View& out, const View& shapes);
/// Draws numbers from the Poisson distribution. Raises RuntimeError for a rate that is negative or not finite.
void poisson(KernelContext& ctx, const View& out, const View& rates);
/// Draws numbers from the binomial distribution. Raises RuntimeError for a count that is not a whole number from 0 to
/// 2^53, or for a probability that is not between 0 and 1.
void binomial(KernelContext& ctx, const View& out, const View& counts, const View& probs);

}  // namespace rushlight::cpu
