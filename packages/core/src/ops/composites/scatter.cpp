#include "bodies/scatter.h"
#include "ops/broadcasting.h"
#include "ops/fresh.h"
#include "ops/views.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_scatter_reduce_.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/broadcast_to.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/constant_pad_nd.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/full.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/logical_and.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/put_.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/scatter.h"
#include "rushlight/ops/scatter_.h"
#include "rushlight/ops/scatter_add.h"
#include "rushlight/ops/scatter_add_.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

Tensor row_major_copy(const Tensor& t) { return ops::clone(t, "contiguous"); }
Tensor as(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : ops::_to_copy(t, dtype); }

// Converts indices that count from the end to indices from the front. Indices out of range are reported here, because the
// error of the next operator would not name this operator.
Tensor from_the_front(const char* op, const char* argument, const Tensor& index, int64_t size) {
    if (index.device().type == DeviceType::CPU && index.numel() > 0 && !is_batched(index)) {
        const Tensor seen = ops::_to_copy(ops::detach(index), DType::Int64);
        const int64_t least = *ops::amin(seen).data<int64_t>(), most = *ops::amax(seen).data<int64_t>();
        RL_CHECK(least >= -size && most < size, throw_index,
                 "%s(%s): index %lld is out of range for size %lld", op, argument,
                 (long long)(most >= size ? most : least), (long long)size);
    }
    return ops::where(ops::lt(index, Scalar(0)), ops::add(index, Scalar(size)), index);
}

// Returns the part of src that the index covers, after the checks that the kernel relies on.
Tensor covered(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32 || index.numel() == 0,
             throw_runtime, "%s(index): must be an int64 or int32 tensor, got %s", op, name(index.dtype()));
    const int d = wrap_dim(op, dim, input.dim());
    if (index.numel() == 0)  // may have any shape
        return ops::reshape(ops::narrow(ops::reshape(src, kInts<-1>), 0, 0, 0), index.sizes());
    const bool flat =
        input.dim() + index.dim() + src.dim() <= 3 && input.dim() <= 1 && index.dim() <= 1 && src.dim() <= 1;
    RL_CHECK(
        flat || (index.dim() == input.dim() && src.dim() == input.dim()), throw_runtime,
        "%s(index, src): must have the same number of dimensions as input, got shapes %s (input), %s (index) and %s (src)",
        op, to_string(input.sizes()).c_str(), to_string(index.sizes()).c_str(),
        to_string(src.sizes()).c_str());
    if (index.dim() == 0) return ops::reshape(ops::narrow(ops::reshape(src, kInts<-1>), 0, 0, 1), {});
    Tensor part = src.dim() ? src : ops::reshape(src, kInts<1>);
    for (int64_t k = 0; k < index.dim(); ++k) {
        const int64_t n = index.sizes()[k];
        RL_CHECK(k == d || input.dim() == 0 || n <= input.sizes()[k], throw_runtime,
                 "%s(index): shape %s must not be larger than input's shape %s in dimension %lld", op,
                 to_string(index.sizes()).c_str(), to_string(input.sizes()).c_str(), (long long)k);
        RL_CHECK(n <= part.sizes()[k], throw_runtime,
                 "%s(index, src): index must not be larger than src in any dimension, got shapes %s and %s",
                 op, to_string(index.sizes()).c_str(), to_string(src.sizes()).c_str());
        if (n < part.sizes()[k]) part = ops::narrow(part, k, 0, n);
    }
    return part;
}
std::string_view add_or_multiply(const char* op, std::string_view reduce) {
    RL_CHECK(reduce == "add" || reduce == "multiply", throw_runtime,
             "%s(reduce): must be 'add' or 'multiply', got '%.*s'\n"
             "hint: use scatter_reduce() for other reductions",
             op, static_cast<int>(reduce.size()), reduce.data());
    return reduce == "add" ? "sum" : "prod";
}

Tensor reduce_into(const char* op, const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src,
                   std::string_view reduce, bool include_self) {
    Tensor part = covered(op, target, dim, index, src);
    return ops::_scatter_reduce_(target, dim, index, part, reduce, include_self, op);
}

}  // namespace

Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    return fresh(ops::scatter_(row_major_copy(input), dim, index, src));
}
Tensor scatter_value(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
    return fresh(ops::scatter_(row_major_copy(input), dim, index, value));
}
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
    return fresh(ops::scatter_add_(row_major_copy(input), dim, index, src));
}

Tensor put(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
    return fresh(ops::put_(row_major_copy(input), index, source, accumulate));
}
Tensor scatter_reduce_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool include_self) {
    return reduce_into("scatter_reduce_", input, dim, index, src, reduce, include_self);
}
Tensor scatter_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self) {
    return fresh(reduce_into("scatter_reduce", row_major_copy(input), dim, index, src, reduce, include_self));
}
Tensor scatter__reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce) {
    return reduce_into("scatter_", input, dim, index, src, add_or_multiply("scatter_", reduce), true);
}
Tensor scatter__value_reduced(const Tensor& input, int64_t dim, const Tensor& index, Scalar value,
                              std::string_view reduce) {
    return scatter__reduced(input, dim, index, ops::full(index.sizes(), value, input.dtype(), input.device()),
                            reduce);
}
Tensor scatter_reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce) {
    return fresh(reduce_into("scatter", row_major_copy(input), dim, index, src,
                             add_or_multiply("scatter", reduce), true));
}
Tensor scatter_value_reduced(const Tensor& input, int64_t dim, const Tensor& index, Scalar value,
                             std::string_view reduce) {
    return scatter_reduced(input, dim, index, ops::full(index.sizes(), value, input.dtype(), input.device()),
                           reduce);
}

Tensor _grown(const Tensor& input, IntList sizes) {
    if (std::ranges::equal(input.sizes(), sizes)) return input;
    const auto n = static_cast<size_t>(input.dim());
    if (sizes.size() != n && input.numel() == 0) return ops::zeros(sizes, input.dtype(), input.device());
    if (sizes.size() != n && input.numel() == 1)
        return _grown(ops::reshape(input, std::vector<int64_t>(sizes.size(), 1)), sizes);
    RL_CHECK(sizes.size() == n, throw_runtime, "_grown(sizes): needs %zu numbers for shape %s, got %s", n,
             to_string(input.sizes()).c_str(), to_string(sizes).c_str());
    int64_t pad[2 * kMaxDims] = {};
    for (size_t d = 0; d < n; ++d)
        RL_CHECK(!__builtin_sub_overflow(sizes[d], input.sizes()[d], &pad[2 * (n - 1 - d) + 1]),
                 throw_runtime, "_grown(sizes): must not be negative, got %s", to_string(sizes).c_str());
    return ops::constant_pad_nd(input, IntList(pad, 2 * n), Scalar(0));
}

std::tuple<Tensor, Tensor> _scatter_reduce_backward(const Tensor& grad, const Tensor& input, int64_t dim,
                                                    const Tensor& index, const Tensor& src,
                                                    std::string_view reduce, bool include_self,
                                                    const Tensor& result) {
    if (index.numel() == 0) return {grad, ops::zeros_like(src)};
    auto at = [&](const Tensor& t) { return ops::gather(t, dim, index); };
    // Returns, for each position, the sum of `t` over the elements that are scattered to it.
    auto met = [&](const Tensor& t) {
        return ops::scatter_add(include_self ? ops::ones_like(input) : ops::zeros_like(input), dim, index, t);
    };
    Tensor own, theirs;
    if (reduce == "sum") {
        own = grad;
        theirs = at(grad);
    } else if (reduce == "mean") {
        Tensor count = met(ops::ones_like(src));
        Tensor share = ops::div(grad, ops::where(ops::eq(count, Scalar(0)), Scalar(1), count));
        own = share;
        theirs = at(share);
    } else if (reduce == "prod") {
        // The gradient of a factor is the product of the other factors: result / factor, or the product of the rest if only
        // this factor is 0.
        Tensor rest = ops::_scatter_reduce_(row_major_copy(ops::ones_like(input)), dim, index, src, "prod",
                                            true, "scatter_reduce");
        own = ops::mul(grad, rest);
        Tensor nought = ops::eq(src, Scalar(0));
        Tensor noughts = ops::scatter_add(ops::zeros_like(input), dim, index, as(nought, input.dtype()));
        Tensor single = ops::logical_and(nought, ops::eq(at(noughts), Scalar(1)));
        Tensor start = include_self ? input : ops::ones_like(input);
        Tensor without =
            ops::_scatter_reduce_(row_major_copy(start), dim, index, ops::where(single, Scalar(1), src),
                                  "prod", true, "scatter_reduce");
        theirs = ops::where(single, at(ops::mul(grad, without)),
                            ops::div(at(ops::mul(grad, result)), ops::where(nought, Scalar(1), src)));
    } else {  // equal extremes share the gradient evenly; a NaN equals none, so that its gradients are 0 / 0
        Tensor mine = as(ops::eq(input, result), grad.dtype()),
               is = as(ops::eq(src, at(result)), grad.dtype());
        Tensor count = ops::scatter_add(include_self ? mine : ops::zeros_like(mine), dim, index, is);
        Tensor share =
            ops::div(grad, ops::where(ops::eq(result, result), ops::clamp_min(count, Scalar(1)), Scalar(0)));
        own = ops::mul(share, mine);
        theirs = ops::mul(at(share), is);
    }
    if (!include_self) own = ops::scatter(own, dim, index, Scalar(0));
    return {own, theirs};
}

Tensor take_along_dim(const Tensor& input, const Tensor& indices, std::optional<int64_t> dim) {
    RL_CHECK(indices.dtype() == DType::Int64, throw_runtime,
             "take_along_dim(indices): must be an int64 tensor, got %s", name(indices.dtype()));
    if (!dim)
        return ops::gather(ops::flatten(input), 0,
                           ops::flatten(from_the_front("take_along_dim", "indices", indices, input.numel())));
    RL_CHECK(indices.dim() == input.dim(), throw_runtime,
             "take_along_dim(indices): must have the same number of dimensions as input, got shapes %s and "
             "%s",
             to_string(indices.sizes()).c_str(), to_string(input.sizes()).c_str());
    const auto d = static_cast<size_t>(wrap_dim("take_along_dim", *dim, input.dim()));
    if (input.dim() == 0)
        return ops::gather(input, *dim, from_the_front("take_along_dim", "indices", indices, 1));
    std::vector<int64_t> from = input.shape(), at = indices.shape();
    from[d] = at[d] = 1;
    std::vector<int64_t> joint = broadcast_shapes("take_along_dim", "input", from, "indices", at);
    joint[d] = input.sizes()[d];
    Tensor source = ops::broadcast_to(input, joint);
    joint[d] = indices.sizes()[d];
    return ops::gather(
        source, *dim,
        ops::broadcast_to(from_the_front("take_along_dim", "indices", indices, input.sizes()[d]), joint));
}

}  // namespace rushlight::composites
