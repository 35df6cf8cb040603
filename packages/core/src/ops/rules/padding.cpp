// Padding with elements of the tensor: the resulting shapes, and the paddings that a shape allows.
#include "bodies/padding.h"

namespace rushlight::rules {
namespace {

// Returns the shape after padding. If `with` is true, `input` is already padded, and the shape before padding is returned.
Outputs padded(const Tensor& input, IntList pad, std::string_view mode, bool with) {
    constexpr const char* op = "pad";
    constexpr int64_t kMost = int64_t{1} << 58;
    RL_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", throw_value,
             "%s(mode): got '%.*s', needs 'reflect', 'replicate' or 'circular'", op,
             static_cast<int>(mode.size()), mode.data());
    const auto n = static_cast<size_t>(input.dim());
    RL_CHECK(pad.size() % 2 == 0 && pad.size() <= 2 * n, throw_runtime,
             "%s(pad): needs two numbers for each of at most %zu dimensions, got %s", op, n,
             to_string(pad).c_str());
    int64_t sizes[kMaxDims];
    std::copy(input.sizes().begin(), input.sizes().end(), sizes);
    for (size_t i = 0; i + 1 < pad.size(); i += 2) {
        const size_t d = n - 1 - i / 2;
        const int64_t before = pad[i], after = pad[i + 1];
        RL_CHECK(before >= -kMost && before <= kMost && after >= -kMost && after <= kMost, throw_runtime,
                 "%s(pad): padding %lld and %lld of dimension %zu must be between %lld and %lld", op,
                 (long long)before, (long long)after, d, -(long long)kMost, (long long)kMost);
        if (before == 0 && after == 0) continue;
        const int64_t size = with ? sizes[d] - before - after : sizes[d];
        const int64_t most = mode == "reflect" ? size - 1 : mode == "circular" ? size : kMost;
        RL_CHECK(before >= 0 && after >= 0 && before <= most && after <= most && size > 0, throw_runtime,
                 "%s(pad): padding %lld and %lld of dimension %zu, of size %lld, must be "
                 "between 0 and %lld in mode '%.*s'",
                 op, (long long)before, (long long)after, d, (long long)size, (long long)most,
                 static_cast<int>(mode.size()), mode.data());
        sizes[d] = with ? size : size + before + after;
    }
    Outputs outs;
    outs.add(IntList(sizes, n), input.dtype(), input.device());
    return outs;
}

}  // namespace

Outputs _pad(const Tensor& input, IntList pad, std::string_view mode) {
    return padded(input, pad, mode, false);
}

Outputs _pad_backward(const Tensor& grad, IntList pad, std::string_view mode) {
    RL_CHECK(grad.dtype() != DType::Bool, throw_type,
             "pad(grad): must not be a bool tensor, because bools have no gradient");
    return padded(grad, pad, mode, true);
}

}  // namespace rushlight::rules
