// Flips, rotations, and sums to a smaller shape.
#include "bodies/orientation.h"
#include "ops/views.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/flip.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/transpose.h"

namespace rushlight::composites {

Tensor fliplr(const Tensor& input) {
    RL_CHECK(input.dim() >= 2, throw_runtime, "fliplr(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    return ops::flip(input, kInts<1>);
}
Tensor flipud(const Tensor& input) {
    RL_CHECK(input.dim() >= 1, throw_runtime, "flipud(input): needs at least 1 dimension, got a 0-d tensor");
    return ops::flip(input, kInts<0>);
}

Tensor rot90(const Tensor& input, int64_t k, IntList dims) {
    RL_CHECK(dims.size() == 2, throw_runtime, "rot90(dims): needs two dimensions, got %s",
             to_string(dims).c_str());
    RL_CHECK(input.dim() >= 2, throw_runtime, "rot90(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    const int64_t a = wrap_dim("rot90", dims[0], input.dim()), b = wrap_dim("rot90", dims[1], input.dim());
    RL_CHECK(a != b, throw_runtime, "rot90(dims): the two dimensions must differ, got %s",
             to_string(dims).c_str());
    const int64_t both[] = {a, b};
    switch ((k % 4 + 4) % 4) {
        case 1: return ops::transpose(ops::flip(input, IntList(&b, 1)), a, b);
        case 2: return ops::flip(input, both);
        case 3: return ops::transpose(ops::flip(input, IntList(&a, 1)), a, b);
        default: return ops::clone(input, "contiguous");
    }
}

Tensor adjoint(const Tensor& input) {
    if (input.dim() == 0) return ops::conj(input);
    RL_CHECK(input.dim() >= 2, throw_runtime, "adjoint(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    return ops::conj(ops::transpose(input, -2, -1));
}
Tensor swapdims(const Tensor& input, int64_t dim0, int64_t dim1) { return ops::transpose(input, dim0, dim1); }

Tensor sum_to_size(const Tensor& input, IntList size) {
    const int64_t lead = input.dim() - static_cast<int64_t>(size.size());
    std::vector<int64_t> along;
    bool fits = lead >= 0;
    for (int64_t d = 0; fits && d < input.dim(); ++d) {
        const int64_t have = input.sizes()[d], want = d < lead ? 1 : size[static_cast<size_t>(d - lead)];
        fits = have == want || want == 1;
        if (d < lead || have != want) along.push_back(d);
    }
    RL_CHECK(fits, throw_runtime,
             "sum_to_size(size): a tensor of shape %s does not expand to the shape %s of the input",
             to_string(size).c_str(), to_string(input.sizes()).c_str());
    if (size.size() == 0) return ops::sum(input);
    return along.empty() ? input : ops::reshape(ops::sum(input, along, true), size);
}

Tensor narrow_copy(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
    return ops::clone(ops::narrow(input, dim, start, length), "contiguous");
}

}  // namespace rushlight::composites
