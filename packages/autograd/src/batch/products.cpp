// Rules of products of matrices and of convolutions.
#include <algorithm>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/baddbmm.h"
#include "rushlight/ops/bmm.h"
#include "rushlight/ops/convolution.h"
#include "rushlight/ops/convolution_backward.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/linear.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"

namespace rushlight::autograd::batching {
namespace {

void check(const Call& c, bool good) {
    RL_CHECK(good, throw_runtime, "%s: shapes %s and %s cannot be multiplied", c.op.name,
             to_string(c.tensor(0).sizes()).c_str(), to_string(c.tensor(1).sizes()).c_str());
}

int64_t last(const Tensor& t, int64_t from_end) { return t.sizes()[static_cast<size_t>(t.dim() - from_end)]; }

// Moves dimension 0, the examples, in front of dimension `to` and joins the two dimensions.
Tensor into(const Tensor& t, int64_t to) {
    const Tensor moved = ops::movedim(t, kInts<0>, IntList(&to, 1));
    std::vector<int64_t> sizes = moved.shape();
    const auto d = static_cast<size_t>(to);
    sizes[d] *= sizes[d + 1];
    sizes.erase(sizes.begin() + to + 1);
    return ops::reshape(moved, sizes);
}
// The inverse of `into`.
Tensor out_of(const Tensor& t, int64_t from, int64_t batch) {
    std::vector<int64_t> sizes = t.shape();
    const auto d = static_cast<size_t>(from);
    const int64_t each = sizes[d] / batch;
    sizes[d] = batch;
    sizes.insert(sizes.begin() + from + 1, each);
    return ops::movedim(ops::view(t, sizes), IntList(&from, 1), kInts<0>);
}

Tensor add_bias(const Tensor& result, const Tensor& bias) {
    std::vector<int64_t> sizes(static_cast<size_t>(result.dim()), 1);
    sizes[1] = bias.numel();
    return ops::add(result, ops::view(bias, sizes), Scalar(1));
}

}  // namespace

namespace rules {

void mm(Call& c) {
    check(c, c.rank(0) == 2 && c.rank(1) == 2 && last(c.tensor(0), 1) == last(c.tensor(1), 2));
    c.unwrap();
    c.give(ops::matmul(c.get<Tensor>(0), c.get<Tensor>(1)));
}

void bmm(Call& c) {
    check(c, c.rank(0) == 3 && c.rank(1) == 3 && last(c.tensor(0), 1) == last(c.tensor(1), 2) &&
                 last(c.tensor(0), 3) == last(c.tensor(1), 3));
    c.unwrap();
    c.give(ops::matmul(c.get<Tensor>(0), c.get<Tensor>(1)));
}

void mv(Call& c) {
    check(c, c.rank(0) == 2 && c.rank(1) == 1 && last(c.tensor(0), 1) == last(c.tensor(1), 1));
    const bool rows = c.is_batched(0);
    c.unwrap();
    const Tensor &a = c.get<Tensor>(0), &v = c.get<Tensor>(1);
    if (!rows) return c.give(ops::matmul(v, ops::transpose(a, 0, 1)));
    c.give(ops::squeeze(ops::matmul(a, ops::unsqueeze(v, -1)), kInts<-1>));
}

void dot(Call& c) {
    check(c, c.rank(0) == 1 && c.rank(1) == 1 && c.tensor(0).numel() == c.tensor(1).numel());
    c.unwrap();
    const Tensor product =
        ops::matmul(ops::unsqueeze(c.get<Tensor>(0), -2), ops::unsqueeze(c.get<Tensor>(1), -1));
    c.give(ops::squeeze(product, kInts<-2, -1>));
}

// Checks the addend of beta * input + alpha * (a @ b), which is computed by operators on batched tensors. The addend
// must have the dtype of the product; without this check, the addition would promote it.
static void check_added(const Call& c, const char* argument, const Tensor& added, const Tensor& factor) {
    RL_CHECK(added.dtype() == factor.dtype(), throw_runtime, "%s(%s): needs dtype %s, got %s", c.op.name,
             argument, name(factor.dtype()), name(added.dtype()));
}

void add_product(Call& c) {
    const Tensor input = c.tensor(0), a = c.tensor(1), b = c.tensor(2);
    check_added(c, "input", input, a);
    const int64_t rank = std::string_view(c.op.name).starts_with("baddbmm") ? 3 : 2;
    check(c, c.rank(1) == rank && c.rank(2) == rank);
    const Scalar beta = c.get<Scalar>(3), alpha = c.get<Scalar>(4);
    Tensor product = a.dim() == 2 ? ops::mm(a, b) : ops::bmm(a, b);
    if (!alpha.equals(1)) product = ops::mul(product, alpha);
    Tensor sum = product;
    if (!beta.equals(0)) sum = ops::add(beta.equals(1) ? input : ops::mul(input, beta), product, Scalar(1));
    c.give_as_is(c.op.form == Form::InPlace ? ops::copy_(input, sum, false) : sum);
}

void linear(Call& c) {
    if (!c.is_batched(1) && !c.is_batched(2)) {
        c.unwrap();
        return c.finish();
    }
    const Tensor input = c.tensor(0), weight = c.tensor(1), bias = c.tensor(2);
    if (bias.defined()) check_added(c, "bias", bias, input);
    if (bias.defined() && bias.dim() > 1 && bias.size(-1) != bias.numel())
        return loop(c);  // raises the operator's error: the bias is not a row
    const Tensor product = ops::matmul(input, weight.dim() == 2 ? ops::transpose(weight, 0, 1) : weight);
    c.give_as_is(bias.defined() ? ops::add(product, bias, Scalar(1)) : product);
}

void convolution(Call& c) {
    if (c.mixes_dtypes()) return loop(c);
    check(c, c.rank(0) == c.rank(1) && c.rank(0) >= 3);
    const Tensor bias = c.tensor(2);
    const bool bias_apart = bias.defined() && (c.is_batched(1) || c.is_batched(2));
    const IntList stride = c.ints(3), padding = c.ints(4), dilation = c.ints(5), output_padding = c.ints(7);
    const bool transposed = c.get<bool>(6);
    const int64_t groups = c.integer(8);
    const Tensor inner_bias = bias_apart ? Tensor() : bias;
    Tensor result;
    if (c.is_batched(1)) {
        // The channels of each example are separate groups.
        const Tensor input = into(c.expanded(c.tensor(0)), 1), weight = fold(c.lower(c.tensor(1)));
        result = out_of(ops::convolution(input, weight, Tensor(), stride, padding, dilation, transposed,
                                         output_padding, groups * c.size()),
                        1, c.size());
        result = batch(result, c.level);
    } else if (c.is_batched(0)) {
        result = unfold(ops::convolution(fold(c.lower(c.tensor(0))), c.tensor(1), inner_bias, stride, padding,
                                         dilation, transposed, output_padding, groups),
                        c.size(), c.tensor(0).sizes()[0]);
        result = batch(result, c.level);
    } else {
        result = ops::convolution(c.tensor(0), c.tensor(1), Tensor(), stride, padding, dilation, transposed,
                                  output_padding, groups);
    }
    c.give_as_is(bias_apart ? add_bias(result, bias) : result);
}

// convolution_backward(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, needed)
void convolution_backward(Call& c) {
    const IntList stride = c.ints(3), padding = c.ints(4), dilation = c.ints(5), output_padding = c.ints(7);
    const bool transposed = c.get<bool>(6), rows = c.is_batched(2);
    const int64_t groups = c.integer(8), n = c.size();
    const std::vector<int64_t> wanted = c.ints(9);
    const Tensor grad = c.expanded(c.tensor(0)), input = c.expanded(c.tensor(1));
    Tensor grad_input, grad_weight, grad_bias;
    if (wanted[0] && !rows) {
        grad_input = unfold(std::get<0>(ops::convolution_backward(fold(grad), fold(input), c.tensor(2),
                                                                  stride, padding, dilation, transposed,
                                                                  output_padding, groups, kInts<1, 0, 0>)),
                            n, c.tensor(1).sizes()[0]);
    }
    if (wanted[1] || (wanted[0] && rows)) {
        const int64_t parts[] = {wanted[0] && rows, wanted[1], 0};
        auto [for_input, for_weight, none] =
            ops::convolution_backward(into(grad, 1), into(input, 1), fold(c.expanded(c.tensor(2))), stride,
                                      padding, dilation, transposed, output_padding, groups * n, parts);
        if (parts[0]) grad_input = out_of(for_input, 1, n);
        if (parts[1]) grad_weight = unfold(for_weight, n, c.tensor(2).sizes()[0]);
    }
    if (wanted[2]) {
        std::vector<int64_t> dims{1};
        for (int64_t d = 3; d < grad.dim(); ++d) dims.push_back(d);
        grad_bias = ops::sum(grad, dims, false, std::nullopt);
    }
    c.give({grad_input, grad_weight, grad_bias});
}

// Operators on matrices whose leading dimensions broadcast. The dimension of the examples is put before these
// dimensions.
void matrix_pair(Call& c) {
    const int64_t rank = c.max_rank();
    c.together();
    for (Value& v : c.stack)
        if (auto* t = v.as<Tensor>()) v = pad_rank(*t, rank);
    c.finish();
}

void with_pivots(Call& c) {
    int64_t rank = 0;
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.is_tensor(i)) rank = std::max(rank, c.rank(i) + (i == 1));
    c.together();
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (auto* t = c.stack[i].as<Tensor>()) c.stack[i] = pad_rank(*t, rank - (i == 1));
    c.finish();
}

// Operators on two matrices, like matrix_pair, whose second operand may also be a vector: linalg_solve, linalg_lstsq.
void solve(Call& c) {
    const Tensor a = c.tensor(0), b = c.tensor(1);
    const bool vector =
        b.dim() == 1 ||
        (a.dim() - 1 == b.dim() && std::ranges::equal(b.sizes(), a.sizes().first(a.sizes().size() - 1)));
    if (!vector) return matrix_pair(c);
    c.together();
    c.stack[1] = pad_rank(ops::unsqueeze(c.get<Tensor>(1), -1), a.dim());
    c.run();
    c.stack[0] = ops::squeeze(c.get<Tensor>(0), kInts<-1>);
    c.wrap();
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
