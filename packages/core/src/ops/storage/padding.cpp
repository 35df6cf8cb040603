#include "bodies/padding.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/views.h"

namespace rushlight::storage {

Tensor constant_pad_nd(const Tensor& input, IntList pad, Scalar value) {
    RL_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) <= 2 * input.dim(), throw_runtime,
             "constant_pad_nd(pad): needs two numbers for each of at most %lld dimensions, got %s",
             (long long)input.dim(), to_string(pad).c_str());
    ViewSpec inside(input);  // the part of the input that remains
    int64_t sizes[kMaxDims], before[kMaxDims];
    for (int d = 0; d < inside.ndim; ++d) {
        const auto at = 2 * static_cast<size_t>(inside.ndim - 1 - d);
        const int64_t front = at < pad.size() ? pad[at] : 0, back = at < pad.size() ? pad[at + 1] : 0;
        const int64_t size = inside.sizes[d];
        bool overflow = __builtin_add_overflow(size, front, &sizes[d]);
        overflow |= __builtin_add_overflow(sizes[d], back, &sizes[d]);
        // A negative number removes elements of the input. It never removes padding that another number adds.
        const int64_t kept = overflow ? -1 : size + std::min<int64_t>(front, 0) + std::min<int64_t>(back, 0);
        RL_CHECK(kept >= 0, throw_runtime,
                 "constant_pad_nd(pad): dimension %d of size %lld cannot be padded by %lld and %lld", d,
                 (long long)size, (long long)front, (long long)back);
        before[d] = std::max<int64_t>(front, 0);
        if (front < 0) inside.offset -= front * inside.strides[d];
        inside.sizes[d] = kept;
    }
    Tensor out = make_in_format(IntList(sizes, static_cast<size_t>(inside.ndim)), input.dtype(),
                                input.device(), format_of(input));
    fill_with(out, value);
    ViewSpec position(out);
    for (int d = 0; d < position.ndim; ++d) {
        position.offset += before[d] * position.strides[d];
        position.sizes[d] = inside.sizes[d];
    }
    copy_into(take_view(out, position), take_view(input, inside));
    return out;
}

}  // namespace rushlight::storage
