// Changes of shape: a view if the strides allow it, otherwise a copy.
#include "bodies/reshape.h"
#include "ops/memory_format.h"
#include "ops/views.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/view.h"

namespace rushlight::composites {

Tensor reshape(const Tensor& input, IntList shape) {
    if (input.is_contiguous()) return ops::view(input, shape);
    ViewSpec v;
    if (views::try_view("reshape", input, shape, v)) return ops::view(input, shape);
    return ops::view(ops::clone(input, "contiguous"), shape);
}

Tensor reshape_as(const Tensor& input, const Tensor& other) { return reshape(input, other.sizes()); }

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
    int first = wrap_dim("flatten", start_dim, input.dim()), last = wrap_dim("flatten", end_dim, input.dim());
    RL_CHECK(first <= last, throw_runtime,
             "flatten(start_dim, end_dim): start_dim must not come after end_dim, got dimensions %d and %d",
             first, last);
    if (input.dim() > 0 && first == last) return input;
    int64_t sizes[kMaxDims];
    size_t n = 0;
    int64_t joined = 1;
    for (int d = 0; d < input.dim(); ++d) {
        if (d < first || d > last) sizes[n++] = input.sizes()[d];
        else joined *= input.sizes()[d];
        if (d == last) sizes[n++] = joined;
    }
    if (input.dim() == 0) sizes[n++] = 1;
    return reshape(input, IntList(sizes, n));
}

Tensor ravel(const Tensor& input) {
    // Always copies, because whether the result is a view must not depend on the sizes.
    int64_t all = input.numel();
    return reshape(ops::contiguous(input, "contiguous"), IntList(&all, 1));
}

Tensor unflatten(const Tensor& input, int64_t dim, IntList sizes) {
    RL_CHECK(input.dim() > 0 && !sizes.empty(), throw_runtime,
             "unflatten(dim, sizes): needs a tensor of at least 1 dimension, and at least one size");
    int at = wrap_dim("unflatten", dim, input.dim());
    int64_t known = 1, inferred = 0;
    bool overflow = false;
    for (int64_t s : sizes) {
        if (s == -1) ++inferred;
        else overflow |= s < 0 || __builtin_mul_overflow(known, s, &known);
    }
    int64_t have = input.sizes()[at];
    bool fits = overflow        ? false
                : inferred == 0 ? known == have
                                : inferred == 1 && known > 0 && have % known == 0;
    RL_CHECK(fits, throw_runtime,
             "unflatten(sizes): the product of %s must be the size of dimension %d, which is %lld",
             to_string(sizes).c_str(), at, (long long)have);
    std::vector<int64_t> shape(input.sizes().begin(), input.sizes().begin() + at);
    for (int64_t s : sizes) shape.push_back(s == -1 ? have / known : s);
    shape.insert(shape.end(), input.sizes().begin() + at + 1, input.sizes().end());
    return ops::view(input, shape);
}

Tensor contiguous(const Tensor& input, std::string_view format) {
    return has_format(input, memory_format("contiguous", format)) ? input : ops::clone(input, format);
}

}  // namespace rushlight::composites
