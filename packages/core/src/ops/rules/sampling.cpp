#include "bodies/sampling.h"
#include "rushlight/backend.h"

namespace rushlight::rules {
namespace {

Outputs one_for_each(const char* op, const Tensor& input) {
    floating_only(op, input);
    Outputs out;
    out.add(input.sizes(), input.dtype(), input.device());
    return out;
}

}  // namespace

Outputs _standard_gamma(const Tensor& input, Generator*) { return one_for_each("standard_gamma", input); }
Outputs _standard_log_gamma(const Tensor& input, Generator*) {
    return one_for_each("standard_log_gamma", input);
}
Outputs _binomial(const Tensor& count, const Tensor&, Generator*) { return one_for_each("binomial", count); }

}  // namespace rushlight::rules
