#include "ops/direct.h"
#include "ops/pointwise.h"
#include "rushlight/backend.h"

namespace rushlight::direct {

Tensor copy_(const Tensor& input, const Tensor& src, bool) {
    auto joint = broadcast_shapes("copy_", "input", input.sizes(), "src", src.sizes());
    RL_CHECK(std::equal(joint.begin(), joint.end(), input.sizes().begin(), input.sizes().end()),
             throw_runtime, "copy_(input, src): src of shape %s does not broadcast to input's %s",
             to_string(src.sizes()).c_str(), to_string(input.sizes()).c_str());
    check_writable("copy_", input);
    begin_write(input);
    copy_into(input, src);
    return input;
}

Tensor clone(const Tensor& input, std::optional<std::string_view> memory_format) {
    bool keep = !memory_format || *memory_format == "preserve";
    RL_CHECK(keep || *memory_format == "contiguous", throw_not_implemented,
             "clone(memory_format): '%.*s' is not supported", int(memory_format->size()),
             memory_format->data());
    Tensor out = keep && input.impl()->has(Flag::Dense)
                     ? make_like(input, input.dtype())
                     : make_tensor(input.sizes(), input.dtype(), input.device());
    copy_into(out, input);
    return out;
}

Tensor detach(const Tensor& input) { return make_alias(input); }

Tensor _to_copy(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device) {
    DType t = dtype.value_or(input.dtype());
    Device d = device ? resolve(*device) : input.device();
    Tensor out = input.impl()->has(Flag::Dense) && d == input.device() ? make_like(input, t)
                                                                       : make_tensor(input.sizes(), t, d);
    copy_into(out, input);
    return out;
}

}  // namespace rushlight::direct
