#include "ops/memory_format.h"

#include <algorithm>

#include "rushlight/error.h"

namespace rushlight {
namespace {

// The strides of `sizes` in one of the formats that put the second dimension last.
void channels_last_strides(IntList sizes, int64_t* strides) {
    auto n = static_cast<int>(sizes.size());
    strides[1] = 1;
    int64_t step = std::max<int64_t>(sizes[1], 1);
    for (int d = n - 1; d >= 0; --d) {
        if (d == 1) continue;
        strides[d] = step;
        step *= std::max<int64_t>(sizes[d], 1);
    }
}

int64_t dimensions_of(MemoryFormat format) { return format == MemoryFormat::ChannelsLast ? 4 : 5; }

}  // namespace

MemoryFormat memory_format(const char* op, const std::optional<std::string_view>& name) {
    if (!name || *name == "preserve") return MemoryFormat::Preserve;
    if (*name == "contiguous") return MemoryFormat::Contiguous;
    if (*name == "channels_last") return MemoryFormat::ChannelsLast;
    if (*name == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
    throw_value(
        "%s(memory_format): got '%.*s', needs contiguous_format, preserve_format, channels_last or channels_last_3d",
        op, static_cast<int>(name->size()), name->data());
}

bool has_format(const Tensor& t, MemoryFormat format) {
    if (format == MemoryFormat::Preserve) return true;
    if (format == MemoryFormat::Contiguous) return t.is_contiguous();
    if (t.dim() != dimensions_of(format)) return false;
    int64_t strides[kMaxDims];
    channels_last_strides(t.sizes(), strides);
    for (int d = 0; d < t.dim(); ++d)
        if (t.sizes()[d] != 1 && t.strides()[d] != strides[d]) return false;
    return true;
}

MemoryFormat format_of(const Tensor& t) {
    const auto last = t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    if (t.dim() < 4 || t.dim() > 5 || t.is_contiguous() || !has_format(t, last))
        return MemoryFormat::Contiguous;
    return last;
}

Tensor make_in_format(IntList sizes, DType dtype, Device device, MemoryFormat format) {
    if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
        return make_tensor(sizes, dtype, device);
    int64_t strides[kMaxDims];
    channels_last_strides(sizes, strides);
    return make_strided(sizes, IntList(strides, sizes.size()), dtype, device);
}

Tensor make_in_format(const char* op, const Tensor& like, DType dtype, Device device, MemoryFormat format) {
    if (format == MemoryFormat::Preserve && like.impl()->has(Flag::Dense))
        return device == like.device() ? make_like(like, dtype)
                                       : make_strided(like.sizes(), like.strides(), dtype, device);
    if (format == MemoryFormat::Preserve || format == MemoryFormat::Contiguous)
        return make_tensor(like.sizes(), dtype, device);
    RL_CHECK(like.dim() == dimensions_of(format), throw_runtime,
             "%s(memory_format): %s is for tensors of %lld dimensions, got shape %s", op,
             format == MemoryFormat::ChannelsLast ? "channels_last" : "channels_last_3d",
             (long long)dimensions_of(format), to_string(like.sizes()).c_str());
    return make_in_format(like.sizes(), dtype, device, format);
}

}  // namespace rushlight
