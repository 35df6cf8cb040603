// Copies, conversions, and detaching from the graph.
#include "bodies/memory.h"
#include "ops/broadcasting.h"
#include "ops/copying.h"
#include "ops/memory_format.h"
#include "ops/outputs.h"
#include "rushlight/backend.h"

namespace rushlight::storage {

Tensor copy_(const Tensor& input, const Tensor& src, bool non_blocking) {
    auto joint = broadcast_shapes("copy_", "input", input.sizes(), "other", src.sizes());
    RL_CHECK(std::equal(joint.begin(), joint.end(), input.sizes().begin(), input.sizes().end()),
             throw_runtime, "copy_(input, other): other of shape %s does not broadcast to input's shape %s",
             to_string(src.sizes()).c_str(), to_string(input.sizes()).c_str());
    RL_CHECK(src.device().type != DeviceType::Meta || input.device() == src.device(), throw_not_implemented,
             "copy_(src): Cannot copy out of meta tensor; no data! The target is on %s",
             name(input.device()).c_str());
    check_writable("copy_", input);
    begin_write("copy_", input);
    copy_into(input, src, non_blocking);
    return input;
}

Tensor clone(const Tensor& input, std::optional<std::string_view> format) {
    Tensor out =
        make_in_format("clone", input, input.dtype(), input.device(), memory_format("clone", format));
    copy_into(out, input);
    return out;
}

Tensor detach(const Tensor& input) { return make_alias(input); }

Tensor detach_(const Tensor& input) {
    RL_CHECK(!input.impl()->is_view() || !input.requires_grad(), throw_runtime,
             "detach_(input): a view cannot be detached in place\nhint: use detach()");
    input.set_requires_grad(false);
    return input;
}

Tensor _to_copy(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device,
                bool non_blocking) {
    DType t = dtype.value_or(input.dtype());
    Device d = device ? resolve(*device) : input.device();
    Tensor out = make_in_format("to", input, t, d, MemoryFormat::Preserve);
    copy_into(out, input, non_blocking);
    return out;
}

}  // namespace rushlight::storage
