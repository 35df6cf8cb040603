// Rules of normalizations, losses and random operators.
#include <algorithm>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/empty_like.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/log_softmax.h"
#include "rushlight/ops/masked_fill.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/ones.h"
#include "rushlight/ops/ones_like.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/take.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"

namespace rushlight::autograd::batching {
namespace {

// Multiplies by the weight and adds the bias. Both are viewed in `shape`, so that they broadcast along the right
// dimensions.
Tensor affine(Tensor t, const Tensor& weight, const Tensor& bias, IntList shape) {
    if (weight.defined()) t = ops::mul(t, shape.empty() ? weight : ops::view(weight, shape));
    if (bias.defined()) t = ops::add(t, shape.empty() ? bias : ops::view(bias, shape), Scalar(1));
    return t;
}

std::vector<int64_t> channels(const Tensor& input) {
    std::vector<int64_t> shape(static_cast<size_t>(input.dim()) - 1, 1);
    shape[0] = input.sizes()[1];
    return shape;
}

}  // namespace

namespace rules {

// layer_norm(input, normalized_shape, weight, bias, ...), and _rms_norm, which has no bias. Both normalize over the
// last dimensions.
void layer_norm(Call& c) {
    if (c.mixes_dtypes()) return loop(c);
    const bool has_bias = c.row.arguments[3] == 't';
    const Tensor weight = c.tensor(2), bias = has_bias ? c.tensor(3) : Tensor();
    if (!c.is_batched(weight) && !c.is_batched(bias)) return front(c);
    const bool rows = c.is_batched(0);
    c.stack[2] = Value();
    if (has_bias) c.stack[3] = Value();
    c.unwrap();
    c.run();
    const Tensor plain = c.get<Tensor>(0);
    c.give_as_is(affine(rows ? batch(plain, c.level) : plain, weight, bias, {}));
}

// group_norm(input, num_groups, weight, bias, ...) of (N, C, ...)
void group_norm(Call& c) {
    if (c.mixes_dtypes()) return loop(c);
    const Tensor input = c.tensor(0), weight = c.tensor(2), bias = c.tensor(3);
    const bool apart = c.is_batched(weight) || c.is_batched(bias);
    const bool rows = c.is_batched(0);
    if (apart) c.stack[2] = c.stack[3] = Value();
    if (rows) c.stack[0] = fold(c.lower(input));
    c.run();
    Tensor result = c.get<Tensor>(0);
    if (rows) result = batch(unfold(result, c.size(), input.sizes()[0]), c.level);
    c.give_as_is(apart ? affine(result, weight, bias, channels(input)) : result);
}

// batch_norm(input, weight, bias, running_mean, running_var, training, ...): the channels of all examples become
// channels of one tensor.
void batch_norm(Call& c) {
    const Tensor input = c.tensor(0);
    RL_CHECK(input.dim() >= 2, throw_runtime, "batch_norm(input): needs at least 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    for (size_t i = 3; i <= 4; ++i)
        RL_CHECK(!c.get<bool>(5) || !c.tensor(i).defined() || c.is_batched(i), throw_runtime,
                 "batch_norm: inside vmap each example would update the same running statistics\n"
                 "hint: use eval(), track_running_stats=False, or GroupNorm; or batch the statistics, as "
                 "stack_module_state does");
    const int64_t n = c.size();
    const std::vector<int64_t> sizes = input.shape();
    c.together();
    // Reshape (B, N, C, ...) to (N, B * C, ...).
    std::vector<int64_t> flat = sizes;
    flat[1] *= n;
    c.stack[0] = ops::reshape(ops::movedim(c.get<Tensor>(0), kInts<0>, kInts<1>), flat);
    std::vector<Tensor> written(5);
    for (size_t i = 1; i <= 4; ++i)
        if (auto* t = c.stack[i].as<Tensor>()) {
            const Tensor one = ops::reshape(*t, kInts<-1>);
            if (c.get<bool>(5) && i >= 3 && one.impl()->storage() != t->impl()->storage()) written[i] = *t;
            c.stack[i] = one;
        }
    Stack kept = c.stack;
    c.run();
    for (size_t i = 3; i <= 4; ++i)
        if (written[i].defined())
            ops::copy_(written[i], ops::view(*kept[i].as<Tensor>(), written[i].sizes()), false);
    std::vector<int64_t> apart = sizes;
    apart.insert(apart.begin() + 1, n);
    c.give(ops::movedim(ops::view(c.get<Tensor>(0), apart), kInts<1>, kInts<0>));
}

// --- losses, computed by operators on batched tensors ---

namespace {

// Returns the mean over targets that are not ignored, the sum, or the losses themselves.
Tensor reduced_loss(const Tensor& losses, const Tensor& weights, int64_t reduction) {
    if (reduction == 0) return losses;
    const Tensor total = ops::sum(losses, std::nullopt, false, std::nullopt);
    if (reduction == 2) return total;
    return ops::div(total, ops::sum(weights, std::nullopt, false, std::nullopt));
}

// Returns -log_p[target] * weight[target], or zero where the target is ignored. Classes lie along dimension 1, or
// along dimension 0 if there is no other dimension.
Tensor likelihood(const Tensor& log_p, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                  Tensor& weights) {
    const int64_t dim = log_p.dim() == 1 ? 0 : 1;
    const Tensor ignored = ops::eq(target, Scalar(ignore_index));
    const Tensor safe = ops::masked_fill(target, ignored, Scalar(0));
    const Tensor picked = ops::gather(log_p, dim, ops::unsqueeze(safe, dim), false);
    Tensor one = ops::neg(ops::view(picked, target.sizes()));
    weights = weight.defined() ? ops::take(weight, safe) : Tensor();
    if (!weights.defined()) weights = ops::ones_like(one);
    weights = ops::masked_fill(weights, ignored, Scalar(0));
    return ops::mul(one, weights);
}

// Whether there is a target for each sample and position, and, if weights are passed, one weight for each class.
bool fits(const Tensor& log_p, const Tensor& target, const Tensor& weight) {
    if (log_p.dim() == 0) return false;
    std::vector<int64_t> expected = log_p.shape();
    const auto classes = expected.begin() + (log_p.dim() == 1 ? 0 : 1);
    if (weight.defined() && weight.shape() != std::vector<int64_t>{*classes}) return false;
    expected.erase(classes);
    return target.shape() == expected;
}

}  // namespace

// nll_loss(input, target, weight, reduction, ignore_index)
void nll_loss(Call& c) {
    // The slow path handles a single sample whose target has a dimension, and raises the errors of invalid shapes.
    if (c.mixes_dtypes() || !fits(c.tensor(0), c.tensor(1), c.tensor(2))) return loop(c);
    Tensor weights;
    const Tensor losses = likelihood(c.tensor(0), c.tensor(1), c.tensor(2), c.integer(4), weights);
    c.give_as_is(reduced_loss(losses, weights, c.integer(3)));
}

// _cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)
void cross_entropy(Call& c) {
    const Tensor input = c.tensor(0), target = c.tensor(1), weight = c.tensor(2);
    const double smoothing = c.get<double>(5);
    if (is_differentiable(target.dtype()) || smoothing != 0 || c.mixes_dtypes() ||
        !fits(input, target, weight))
        return loop(c);
    Tensor weights;
    const Tensor log_p = ops::log_softmax(input, input.dim() == 1 ? 0 : 1, std::nullopt);
    const Tensor losses = likelihood(log_p, target, weight, c.integer(4), weights);
    c.give_as_is(reduced_loss(losses, weights, c.integer(3)));
}

// Operators (grad, ...) that are linear in grad. grad has one element for each target, or a single element. If
// nothing else is batched, its factor is the same for all examples.
void loss_backward(Call& c) {
    for (size_t i = 1; i < c.stack.size(); ++i)
        if (c.is_batched(i)) return loop(c);
    const Tensor grad = c.tensor(0);
    c.stack[0] = ops::ones(grad.sizes(), grad.dtype(), grad.device());
    c.run();
    const Tensor slope = c.get<Tensor>(0);
    c.give_as_is(
        ops::mul(slope, grad.dim() == 0 || slope.dim() == grad.dim() ? grad : ops::unsqueeze(grad, 1)));
}

// --- random operators ---

namespace {

void refuse(const Call& c) {
    RL_CHECK(c.level->randomness != Randomness::Error, throw_runtime,
             "%s: random operators are not allowed inside vmap with randomness='error', the default\n"
             "hint: pass randomness='different' to vmap to draw random numbers for each example, or "
             "randomness='same' to use the same numbers for all examples",
             c.op.name);
}

}  // namespace

// Operators that create a tensor from sizes: rand, randn, randint, normal.
void random_sizes(Call& c) {
    refuse(c);
    if (c.level->randomness == Randomness::Same) return c.run();
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 's') {
            std::vector<int64_t> sizes = c.ints(i);
            sizes.insert(sizes.begin(), c.size());
            c.stack[i] = std::move(sizes);
        }
    c.finish();
}

// Random operators without a sizes argument: they run example by example, or once for all examples.
void random_one(Call& c) {
    refuse(c);
    if (c.level->randomness == Randomness::Same) {
        for (size_t i = 0; i < c.stack.size(); ++i)
            RL_CHECK(!c.is_batched(i), throw_runtime,
                     "%s: inside vmap with randomness='same', the arguments of this operator must not be "
                     "batched",
                     c.op.name);
        return c.run();
    }
    const Stack arguments = c.stack;
    std::vector<Tensor> rows;
    for (int64_t b = 0; b < c.size(); ++b) {
        c.stack = arguments;
        c.run();
        rows.push_back(c.get<Tensor>(0));
    }
    RL_CHECK(!rows.empty(), throw_runtime, "%s: vmap needs at least one example, got none", c.op.name);
    c.give(ops::stack(rows, 0));
}

// Random operators whose result has the first tensor's shape and is drawn element by element: bernoulli, _dropout,
// rand_like.
void random_like(Call& c) {
    refuse(c);
    if (c.level->randomness == Randomness::Different) {
        c.together();
        return c.finish();
    }
    // Draws the numbers of one example for all examples. This is possible because the drawn numbers depend only on
    // the positions of elements.
    const Stack arguments = c.stack;
    std::vector<std::pair<size_t, Tensor>> batched;
    Ref<Generator> own = Ref<Generator>::share(&default_generator());
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (c.is_tensor(i) && c.is_batched(i)) batched.emplace_back(i, c.lower(c.tensor(i)));
        if (auto* g = arguments[i].as<Ref<Generator>>()) own = *g;
    }
    if (batched.empty()) return c.run();
    std::vector<Tensor> rows;
    const auto state = own->get_state();
    for (int64_t b = 0; b < c.size(); ++b) {
        own->set_state(state);
        c.stack = arguments;
        for (const auto& [i, value] : batched) c.stack[i] = ops::select(value, 0, b);
        c.run();
        rows.push_back(c.get<Tensor>(0));
    }
    c.give(ops::stack(rows, 0));
}

// Random operators that draw along a dimension: multinomial.
void random_each(Call& c) {
    refuse(c);
    if (c.level->randomness == Randomness::Different && c.is_batched(0)) return loop(c);
    random_like(c);
}

// In-place random operators: uniform_, normal_, bernoulli_.
void random_in_place(Call& c) {
    refuse(c);
    const bool rows = c.is_batched(0);
    if (c.level->randomness == Randomness::Different) {
        RL_CHECK(
            rows, throw_runtime,
            "%s: with randomness='different' each example would write its own random numbers into the same "
            "tensor, because the tensor is not batched",
            c.op.name);
        c.unwrap();
        return c.finish();
    }
    if (!rows) return c.run();
    const Tensor value = c.lower(c.tensor(0));
    const Tensor one = ops::empty_like(c.size() ? ops::select(value, 0, 0) : value);
    c.stack[0] = one;
    c.run();
    ops::copy_(value, one, false);
    c.wrap();
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
