// Rearranges channels into spatial positions and back.
#include <algorithm>
#include <numeric>

#include "bodies/patches.h"
#include "rushlight/memory_format.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/reshape.h"

namespace rushlight::composites {
namespace {

void check(const char* op, const char* name, const Tensor& input, int64_t factor) {
    RL_CHECK(input.dim() >= 3, throw_runtime, "%s(input): needs at least 3 dimensions, got shape %s", op,
             to_string(input.sizes()).c_str());
    RL_CHECK(factor > 0 && factor < (int64_t{1} << 31), throw_runtime, "%s(%s): must be positive, got %lld",
             op, name, (long long)factor);
}

// Returns a reshaped copy, even if the sizes would allow a view.
Tensor copied(const Tensor& t, IntList sizes) { return ops::reshape(ops::clone(t, "contiguous"), sizes); }

// Splits the input into dimensions of the sizes `split`: first the batch, then `parts` dimensions for parts of the channels,
// then the other dimensions. Permutes them into `order`, and joins them into `sizes`. Dimensions 1 to `joined` of the
// permuted tensor become the channels. The result is a copy in the memory format of the input.
Tensor rearranged(const Tensor& input, std::vector<int64_t> split, int64_t parts, std::vector<int64_t> order,
                  int64_t joined, IntList sizes) {
    if (format_of(input) != MemoryFormat::ChannelsLast)
        return copied(ops::permute(ops::reshape(input, split), order), sizes);
    // For channels-last inputs, the same operations with the channels after the positions. So the gradient is
    // channels-last, too.
    const auto channels_inside = [](std::vector<int64_t>& list, int64_t count) {
        std::rotate(list.begin() + 1, list.begin() + 1 + count, list.end());
    };
    const int64_t others = static_cast<int64_t>(split.size()) - 1 - parts;
    for (int64_t& d : order)
        if (d > 0) d += d <= parts ? others : -parts;
    channels_inside(split, parts);
    channels_inside(order, joined);
    const Tensor rows = ops::reshape(ops::permute(input, kInts<0, 2, 3, 1>), split);
    const int64_t inside[] = {sizes[0], sizes[2], sizes[3], sizes[1]};
    return ops::permute(copied(ops::permute(rows, order), inside), kInts<0, 3, 1, 2>);
}

}  // namespace

Tensor pixel_shuffle(const Tensor& input, int64_t r) {
    check("pixel_shuffle", "upscale_factor", input, r);
    const int64_t channels = input.size(-3), height = input.size(-2), width = input.size(-1);
    RL_CHECK(
        channels % (r * r) == 0, throw_runtime,
        "pixel_shuffle(input): the number of channels, %lld, must be a multiple of upscale_factor squared, %lld",
        (long long)channels, (long long)(r * r));
    int64_t n = 1;
    for (int64_t d = 0; d < input.dim() - 3; ++d) n *= input.sizes()[d];
    std::vector<int64_t> joined(input.sizes().begin(), input.sizes().end() - 3);
    joined.insert(joined.end(), {channels / (r * r), height * r, width * r});
    return rearranged(input, {n, channels / (r * r), r, r, height, width}, 3, {0, 1, 4, 2, 5, 3}, 1, joined);
}

Tensor pixel_unshuffle(const Tensor& input, int64_t r) {
    check("pixel_unshuffle", "downscale_factor", input, r);
    const int64_t channels = input.size(-3), height = input.size(-2), width = input.size(-1);
    RL_CHECK(height % r == 0 && width % r == 0, throw_runtime,
             "pixel_unshuffle(input): height %lld and width %lld must be multiples of downscale_factor %lld",
             (long long)height, (long long)width, (long long)r);
    int64_t n = 1;
    for (int64_t d = 0; d < input.dim() - 3; ++d) n *= input.sizes()[d];
    std::vector<int64_t> joined(input.sizes().begin(), input.sizes().end() - 3);
    joined.insert(joined.end(), {channels * r * r, height / r, width / r});
    return rearranged(input, {n, channels, height / r, r, width / r, r}, 1, {0, 1, 3, 5, 2, 4}, 3, joined);
}

Tensor channel_shuffle(const Tensor& input, int64_t groups) {
    check("channel_shuffle", "groups", input, groups);
    const int64_t channels = input.sizes()[1];
    RL_CHECK(channels % groups == 0, throw_runtime,
             "channel_shuffle(groups): %lld channels cannot be divided into %lld groups", (long long)channels,
             (long long)groups);
    std::vector<int64_t> split = input.shape();
    split[1] = groups;
    split.insert(split.begin() + 2, channels / groups);
    std::vector<int64_t> order(split.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[1], order[2]);
    return rearranged(input, split, 2, order, 2, input.sizes());
}

}  // namespace rushlight::composites
