#include "ops/memory_format.h"

#include <algorithm>
#include <utility>

#include "rushlight/error.h"

namespace rushlight {
namespace {

int64_t dimensions_of(MemoryFormat format) { return format == MemoryFormat::ChannelsLast ? 4 : 5; }

// Compares the order of two dimensions in memory: negative if `a` is inside `b`, positive if `b` is inside `a`, 0 if no
// operand determines their order.
int compare_dimensions(IntList sizes, const int64_t* const* operands, int count, int a, int b) {
    for (int i = 0; i < count; ++i) {
        const int64_t inner = operands[i][a], outer = operands[i][b];
        if (inner == 0 || outer == 0) continue;
        if (inner != outer) return inner < outer ? -1 : 1;
        if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
}

}  // namespace

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

void strides_in_order(IntList sizes, const int64_t* const* operands, int count, int64_t* strides) {
    const int ndim = static_cast<int>(sizes.size());
    int order[kMaxDims];  // dimensions from the innermost to the outermost
    for (int i = 0; i < ndim; ++i) {
        order[i] = ndim - 1 - i;
        // If no operand determines the order of two dimensions, the next outer dimension is compared.
        for (int from = i, k = i - 1; k >= 0; --k) {
            const int compared = compare_dimensions(sizes, operands, count, order[k], order[from]);
            if (compared < 0) break;
            if (compared == 0) continue;
            std::swap(order[k], order[from]);
            from = k;
        }
    }
    int64_t step = 1;
    for (int i = 0; i < ndim; ++i) {
        strides[order[i]] = step;
        step *= std::max<int64_t>(sizes[order[i]], 1);
    }
}

MemoryFormat memory_format(const char* op, const std::optional<std::string_view>& name) {
    if (!name || *name == "preserve") return MemoryFormat::Preserve;
    if (*name == "contiguous") return MemoryFormat::Contiguous;
    if (*name == "channels_last") return MemoryFormat::ChannelsLast;
    if (*name == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
    throw_value(
        "%s(memory_format): got '%.*s', needs contiguous_format, preserve_format, channels_last or channels_last_3d",
        op, static_cast<int>(name->size()), name->data());
}

std::string_view name(MemoryFormat format) {
    switch (format) {
        case MemoryFormat::Preserve: return "preserve";
        case MemoryFormat::ChannelsLast: return "channels_last";
        case MemoryFormat::ChannelsLast3d: return "channels_last_3d";
        default: return "contiguous";
    }
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
    const int n = static_cast<int>(t.dim());
    if (n < 4 || n > 5) return MemoryFormat::Contiguous;
    const IntList sizes = t.sizes(), strides = t.strides();
    // From the innermost dimension of the format to the outermost, each stride must be at least as large as the extent of
    // the dimension inside.
    int64_t least = 0;
    for (int i = 0; i < n; ++i) {
        const auto d = static_cast<size_t>(i == 0 ? 1 : i == n - 1 ? 0 : n - i);
        if (sizes[d] == 0 || strides[d] < std::max<int64_t>(least, i == 0)) return MemoryFormat::Contiguous;
        // With one element for each sample, the strides are those of both formats.
        if (d == 0 && least == strides[1]) return MemoryFormat::Contiguous;
        least = strides[d] * sizes[d];
    }
    return n == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

void check_format(const char* op, IntList sizes, MemoryFormat format) {
    if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return;
    RL_CHECK(static_cast<int64_t>(sizes.size()) == dimensions_of(format), throw_runtime,
             "%s(memory_format): %s is for tensors of %lld dimensions, got shape %s", op,
             format == MemoryFormat::ChannelsLast ? "channels_last" : "channels_last_3d",
             (long long)dimensions_of(format), to_string(sizes).c_str());
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
    if (format == MemoryFormat::Preserve && like.numel() != 0) {
        int64_t strides[kMaxDims];
        const int64_t* given = like.strides().data();
        strides_in_order(like.sizes(), &given, 1, strides);
        return make_strided(like.sizes(), IntList(strides, like.sizes().size()), dtype, device);
    }
    if (format == MemoryFormat::Preserve || format == MemoryFormat::Contiguous)
        return make_tensor(like.sizes(), dtype, device);
    check_format(op, like.sizes(), format);
    return make_in_format(like.sizes(), dtype, device, format);
}

}  // namespace rushlight
