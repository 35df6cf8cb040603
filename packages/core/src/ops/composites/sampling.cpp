#include "bodies/sampling.h"
#include "ops/rules.h"
#include "rushlight/ops/_binomial.h"
#include "rushlight/ops/_standard_log_gamma.h"
#include "rushlight/ops/_standard_log_gamma_grad.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/log.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/softmax.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {

Tensor _standard_gamma_grad(const Tensor& input, const Tensor& output) {
    return ops::mul(output, ops::_standard_log_gamma_grad(input, ops::log(output)));
}

Tensor _sample_dirichlet(const Tensor& input, Generator* generator) {
    RL_CHECK(input.dim() > 0, throw_runtime,
             "sample_dirichlet(input): needs at least 1 dimension, got a 0-d tensor");
    return ops::softmax(ops::_standard_log_gamma(input, generator), -1);
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
    rules::floating_only("binomial", count);
    rules::same_dtype("binomial", "count", count, "prob", prob);
    const Tensor n = ops::detach(count), p = ops::detach(prob);
    // Broadcasts both tensors by adding zeros, so that vmap receives two tensors with the same batch.
    return ops::_binomial(ops::add(n, ops::zeros_like(p)), ops::add(p, ops::zeros_like(n)), generator);
}

}  // namespace rushlight::composites
