// Fills an existing tensor with one value.
#include "bodies/creation.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/numbers.h"
#include "ops/outputs.h"

namespace rushlight::storage {

Tensor fill_(const Tensor& input, Scalar value) {
    fill_element(value, input.dtype());  // raises if the value does not fit
    check_writable("fill_", input);
    begin_write("fill_", input);
    fill_with(input, value);
    return input;
}
Tensor fill__tensor(const Tensor& input, const Tensor& value) {
    RL_CHECK(value.dim() == 0, throw_runtime, "fill_(value): must be a number or a 0-d tensor, got shape %s",
             to_string(value.sizes()).c_str());
    RL_CHECK(value.device().type != DeviceType::Meta || input.device() == value.device(),
             throw_not_implemented,
             "fill_(value): Cannot copy out of meta tensor; no data! The target is on %s",
             name(input.device()).c_str());
    check_writable("fill_", input);
    begin_write("fill_", input);
    copy_into(input, value);
    return input;
}
Tensor zero_(const Tensor& input) {
    check_writable("zero_", input);
    begin_write("zero_", input);
    fill_with(input, Scalar(0));
    return input;
}

}  // namespace rushlight::storage
