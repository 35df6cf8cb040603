#include "cpu/masking.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/masking_kernels.h"
#include "cpu/odometer.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// The selected elements of a tensor, stored as bits and divided into parts. The number of selected elements before
// each part is stored too, so that parts can be processed in any order.
struct Chosen {
    static constexpr int64_t kPart = 1 << 14, kWords = kPart / 64;

    uint64_t* words;
    int64_t* begins;  // number of selected elements before each part, and at last in total
    int64_t n, parts;

    int64_t count() const { return begins[parts]; }
    // Calls body(words, first, n, before) for each part that has selected elements. The part consists of n elements
    // starting with element `first`; `before` is the number of selected elements in earlier parts.
    template <class Body>
    void each(Body body) const {
        parallel_for(0, parts, 2, [&](int64_t from, int64_t to) {
            for (int64_t p = from; p < to; ++p)
                if (begins[p + 1] > begins[p])
                    body(words + p * kWords, p * kPart, std::min(kPart, n - p * kPart), begins[p]);
        });
    }
};

// Selects the elements of `v` that are not zero, and stores the selection in ctx.kept for the next kernel.
const Chosen& choose(KernelContext& ctx, const View& v) {
    // The words of all parts are in one array. The last part has only as many words as it needs.
    const int64_t parts = (v.numel + Chosen::kPart - 1) / Chosen::kPart, words = (v.numel + 63) / 64;
    char* memory = scratch<char>(ctx, static_cast<int64_t>(sizeof(Chosen)) + 8 * (words + parts + 1));
    Chosen& chosen = *reinterpret_cast<Chosen*>(memory);
    ctx.kept = &chosen;
    chosen.n = v.numel;
    chosen.parts = parts;
    chosen.words = reinterpret_cast<uint64_t*>(memory + sizeof(Chosen));
    chosen.begins = reinterpret_cast<int64_t*>(chosen.words + words);
    chosen.begins[0] = 0;
    const View dense = contiguous_in(ctx, v);
    const size_t size = itemsize(v.dtype);
    parallel_for(0, chosen.parts, 2, [&](int64_t from, int64_t to) {
        for (int64_t p = from; p < to; ++p) {
            const int64_t first = p * Chosen::kPart;
            chosen.begins[p + 1] = masking_kernels().bits(
                chosen.words + p * Chosen::kWords, dense.as<char>() + static_cast<size_t>(first) * size,
                std::min(Chosen::kPart, chosen.n - first), v.dtype);
        }
    });
    for (int64_t p = 0; p < chosen.parts; ++p) chosen.begins[p + 1] += chosen.begins[p];
    return chosen;
}
const Chosen& kept(const KernelContext& ctx) { return *static_cast<const Chosen*>(ctx.kept); }

}  // namespace

int64_t nonzero_count(KernelContext& ctx, const View& input) { return choose(ctx, input).count(); }
void nonzero(KernelContext& ctx, const View& out, const View& input) {
    if (input.ndim == 0) return;
    kept(ctx).each([&](const uint64_t* words, int64_t first, int64_t n, int64_t before) {
        masking_kernels().coordinates(out.as<int64_t>() + before * out.strides[0], out.strides[0],
                                      out.strides[1], words, first, n, input.sizes, input.ndim);
    });
}

void nonzero_static(KernelContext& ctx, const View& out, const View& input, int64_t size,
                    int64_t fill_value) {
    const int64_t count = choose(ctx, input).count(), width = input.ndim;
    View all = out;
    if (count > size) all.data = scratch<int64_t>(ctx, count * width);
    nonzero(ctx, all, input);
    const int64_t filled = std::min(count, size) * width;
    if (all.data != out.data) std::copy_n(all.as<int64_t>(), filled, out.as<int64_t>());
    std::fill_n(out.as<int64_t>() + filled, size * width - filled, fill_value);
}

int64_t masked_elements_count(KernelContext& ctx, const View&, const View& mask) {
    return choose(ctx, mask).count();
}
void masked_elements(KernelContext& ctx, const View& out, const View& input, const View&) {
    if (out.numel == 0) return;
    const View dense = contiguous_in(ctx, input);
    const size_t size = itemsize(input.dtype);
    kept(ctx).each([&](const uint64_t* words, int64_t first, int64_t n, int64_t before) {
        masking_kernels().compress(out.as<char>() + static_cast<size_t>(before) * size,
                                   dense.as<char>() + static_cast<size_t>(first) * size, words, n, size);
    });
}

void masked_scatter_check(KernelContext& ctx, const View& input, const View& mask, const View& source) {
    const int64_t wanted = choose(ctx, broadcast_to(ctx, mask, input)).count();
    RL_CHECK(wanted <= source.numel, throw_runtime,
             "masked_scatter_(source): the mask has %lld true elements, but source has only %lld elements",
             static_cast<long long>(wanted), static_cast<long long>(source.numel));
}
void masked_scatter(KernelContext& ctx, const View& input, const View&, const View& source) {
    const Chosen& chosen = kept(ctx);
    if (chosen.count() == 0) return;
    const View values = contiguous_in(ctx, apart_from(ctx, source, input));
    const size_t size = itemsize(input.dtype);
    if (input.contiguous)
        return chosen.each([&](const uint64_t* words, int64_t first, int64_t n, int64_t before) {
            masking_kernels().expand(input.as<char>() + static_cast<size_t>(first) * size,
                                     values.as<char>() + static_cast<size_t>(before) * size, words, n, size);
        });
    Odometer elements;
    for (int d = 0; d < input.ndim; ++d) elements.push(input.sizes[d], input.strides[d]);
    chosen.each([&](const uint64_t* words, int64_t first, int64_t n, int64_t before) {
        const char* from = values.as<char>() + static_cast<size_t>(before) * size;
        for (int64_t i = 0; i < n; i += 64)
            for (uint64_t word = words[i / 64]; word; word &= word - 1, from += size) {
                const int64_t at = elements.offset(first + i + __builtin_ctzll(word));
                __builtin_memcpy(input.as<char>() + at * static_cast<int64_t>(size), from, size);
            }
    });
}

}  // namespace rushlight::cpu
