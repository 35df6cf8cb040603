// Other shapes: views where the strides allow it, copies where not.
#include "bodies/views.h"
#include "ops/memory_format.h"
#include "ops/views.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/select.h"
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
    RL_CHECK(first <= last, throw_runtime, "flatten(start_dim, end_dim): start_dim %d comes after end_dim %d",
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
    // A copy also where the strides of one dimension would do for a view: whether it is one must not depend on sizes.
    int64_t all = input.numel();
    return reshape(ops::contiguous(input, "contiguous"), IntList(&all, 1));
}

Tensor narrow_start(const Tensor& input, int64_t dim, const Tensor& start, int64_t length) {
    RL_CHECK(start.dim() == 0 && is_integral(start.dtype()) && start.dtype() != DType::Bool, throw_runtime,
             "narrow(start): needs an integer, or an integer tensor without dimensions, got shape %s of %s",
             to_string(start.sizes()).c_str(), name(start.dtype()));
    require_values("narrow(start)", start);
    const Tensor first = ops::_to_copy(start, DType::Int64, Device{});
    return ops::narrow(input, dim, *first.data<int64_t>(), length);
}

Tensor unflatten(const Tensor& input, int64_t dim, IntList sizes) {
    RL_CHECK(input.dim() > 0 && !sizes.empty(), throw_runtime,
             "unflatten(dim, sizes): nothing to split, or no sizes");
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
    RL_CHECK(fits, throw_runtime, "unflatten(sizes): %s does not multiply up to dimension %d of size %lld",
             to_string(sizes).c_str(), at, (long long)have);
    std::vector<int64_t> shape(input.sizes().begin(), input.sizes().begin() + at);
    for (int64_t s : sizes) shape.push_back(s == -1 ? have / known : s);
    shape.insert(shape.end(), input.sizes().begin() + at + 1, input.sizes().end());
    return ops::view(input, shape);
}

Tensor contiguous(const Tensor& input, std::string_view format) {
    return has_format(input, memory_format("contiguous", format)) ? input : ops::clone(input, format);
}

// Beyond it the tensors themselves would fill the memory.
static void check_pieces(const char* op, int64_t count) {
    constexpr int64_t kMost = int64_t{1} << 24;
    RL_CHECK(count <= kMost, throw_runtime, "%s: makes at most %lld tensors, not %lld", op, (long long)kMost,
             (long long)count);
}

std::vector<Tensor> split(const Tensor& input, int64_t split_size, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "split(): a 0-d tensor cannot be split");
    int d = wrap_dim("split", dim, input.dim());
    int64_t size = input.sizes()[d];
    RL_CHECK(split_size > 0 || (split_size == 0 && size == 0), throw_runtime,
             "split(split_size): must be positive, got %lld", (long long)split_size);
    check_pieces("split", split_size ? size / split_size : 1);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    do {
        int64_t length = std::min(split_size, size - at);
        pieces.push_back(ops::narrow(input, d, at, length));
        at += length;
    } while (at < size);
    return pieces;
}

std::vector<Tensor> split_sizes(const Tensor& input, IntList sizes, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "split(): a 0-d tensor cannot be split");
    int d = wrap_dim("split", dim, input.dim());
    int64_t total = 0;
    for (int64_t s : sizes) {
        RL_CHECK(s >= 0, throw_runtime, "split(split_size): sizes must not be negative, got %s",
                 to_string(sizes).c_str());
        RL_CHECK(!__builtin_add_overflow(total, s, &total), throw_runtime, "split(split_size): %s overflows",
                 to_string(sizes).c_str());
    }
    RL_CHECK(total == input.sizes()[d], throw_runtime,
             "split(split_size): %s sums to %lld, but dimension %d has size %lld", to_string(sizes).c_str(),
             (long long)total, d, (long long)input.sizes()[d]);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (int64_t s : sizes) {
        pieces.push_back(ops::narrow(input, d, at, s));
        at += s;
    }
    return pieces;
}

std::vector<Tensor> chunk(const Tensor& input, int64_t chunks, int64_t dim) {
    RL_CHECK(chunks > 0, throw_runtime, "chunk(chunks): must be positive, got %lld", (long long)chunks);
    RL_CHECK(input.dim() > 0, throw_runtime, "chunk(): a 0-d tensor cannot be split");
    int64_t size = input.sizes()[wrap_dim("chunk", dim, input.dim())];
    check_pieces("chunk", std::min(chunks, size ? size : chunks));
    if (size == 0) {
        std::vector<Tensor> pieces;
        for (int64_t i = 0; i < chunks; ++i) pieces.push_back(ops::narrow(input, dim, 0, 0));
        return pieces;
    }
    return split(input, (size - 1) / chunks + 1, dim);
}

std::vector<Tensor> unbind(const Tensor& input, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_index, "unbind(): a 0-d tensor has no slices");
    int d = wrap_dim("unbind", dim, input.dim());
    check_pieces("unbind", input.sizes()[d]);
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < input.sizes()[d]; ++i) slices.push_back(ops::select(input, d, i));
    return slices;
}

}  // namespace rushlight::composites
