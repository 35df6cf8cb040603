#include "bodies/order.h"
#include "ops/launch.h"
#include "ops/views.h"
#include "rushlight/ops/_repeat_index.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/sort.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

Tensor roll_one(const Tensor& input, int64_t shift, int dim) {
    int64_t size = input.sizes()[dim];
    if (size == 0) return input;
    shift = (shift % size + size) % size;
    if (shift == 0) return input;
    const Tensor parts[] = {ops::narrow(input, dim, size - shift, shift),
                            ops::narrow(input, dim, 0, size - shift)};
    return ops::cat(parts, dim);
}

void check_output_size(std::optional<int64_t> output_size, int64_t length) {
    RL_CHECK(!output_size || *output_size == length, throw_runtime,
             "repeat_interleave(output_size): the repeats add up to %lld, but output_size is %lld",
             (long long)length, (long long)output_size.value_or(0));
}

// Returns the numbers from 0 to size - 1, number i repeated repeats[i] times. On the meta device, `output_size` is the
// length.
Tensor repeat_index(const Tensor& repeats, int64_t size, std::optional<int64_t> output_size) {
    if (output_size && repeats.device().type == DeviceType::Meta)
        return rules::_repeat_index(repeats, size, *output_size).make(0);
    Tensor index = ops::_repeat_index(repeats, size);
    check_output_size(output_size, index.numel());
    return index;
}

}  // namespace

Tensor argsort(const Tensor& input, int64_t dim, bool descending, std::optional<bool> stable) {
    return std::get<1>(ops::sort(input, dim, descending, stable));
}

Tensor msort(const Tensor& input) { return std::get<0>(ops::sort(input, 0)); }

Tensor roll(const Tensor& input, IntList shifts, IntList dims) {
    if (dims.empty()) {
        RL_CHECK(shifts.size() == 1, throw_runtime,
                 "roll(shifts): needs one number if dims is not given, got %s", to_string(shifts).c_str());
        Tensor flat = ops::flatten(input), rolled = roll_one(flat, shifts[0], 0);
        return ops::reshape(rolled.is_same(flat) ? ops::clone(flat) : rolled, input.sizes());
    }
    RL_CHECK(shifts.size() == dims.size(), throw_runtime,
             "roll(shifts, dims): %s and %s must have the same length", to_string(shifts).c_str(),
             to_string(dims).c_str());
    RL_CHECK(input.dim() > 0, throw_index, "roll(dims): a 0-d tensor has no dimension %lld",
             (long long)dims[0]);
    Tensor result = input;
    for (size_t i = 0; i < dims.size(); ++i)
        result = roll_one(result, shifts[i], wrap_dim("roll", dims[i], input.dim()));
    return result.is_same(input) ? ops::clone(input) : result;
}

// Each dimension becomes a pair (repeats, size), and the first of the pair is expanded.
Tensor repeat(const Tensor& input, IntList repeats) {
    const size_t n = repeats.size(), lead = n - static_cast<size_t>(input.dim());
    RL_CHECK(static_cast<int64_t>(n) >= input.dim(), throw_runtime,
             "repeat(repeats): %s has fewer numbers than shape %s has dimensions", to_string(repeats).c_str(),
             to_string(input.sizes()).c_str());
    std::vector<int64_t> ones, spread, joined;
    // Joining a pair usually copies the elements. If a pair can be joined as a view, the elements are copied first,
    // because the result must not be a view of the input.
    bool joins = false;
    for (size_t d = 0; d < n; ++d) {
        RL_CHECK(repeats[d] >= 0, throw_runtime, "repeat(repeats): numbers must not be negative, got %s",
                 to_string(repeats).c_str());
        int64_t size = d < lead ? 1 : input.sizes()[d - lead];
        joins |= repeats[d] > 1 && size > 1 && input.strides()[d - lead] != 0;
        ones.insert(ones.end(), {1, size});
        spread.insert(spread.end(), {repeats[d], size});
        joined.push_back(0);
        RL_CHECK(!__builtin_mul_overflow(repeats[d], size, &joined.back()), throw_runtime,
                 "repeat(repeats): the result of repeats %s for shape %s has too many elements",
                 to_string(repeats).c_str(), to_string(input.sizes()).c_str());
    }
    Tensor spread_out = ops::expand(ops::reshape(input, ones), spread, false);
    joins = joins && spread_out.numel() > 0;
    return ops::reshape(joins ? spread_out : ops::clone(spread_out, "contiguous"), joined);
}

Tensor tile(const Tensor& input, IntList dims) {
    std::vector<int64_t> repeats(dims.begin(), dims.end());
    if (static_cast<int64_t>(repeats.size()) < input.dim())
        repeats.insert(repeats.begin(), static_cast<size_t>(input.dim()) - repeats.size(), 1);
    return repeat(input, repeats);
}

Tensor repeat_interleave(const Tensor& input, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
    RL_CHECK(repeats >= 0, throw_runtime, "repeat_interleave(repeats): must not be negative, got %lld",
             (long long)repeats);
    Tensor source = dim ? input : ops::flatten(input);
    int d = wrap_dim("repeat_interleave", dim.value_or(0), source.dim());
    if (source.dim() == 0) source = ops::flatten(source);
    std::vector<int64_t> spread = source.shape(), joined = source.shape();
    spread.insert(spread.begin() + d + 1, repeats);
    int64_t& length = joined[static_cast<size_t>(d)];
    RL_CHECK(!__builtin_mul_overflow(length, repeats, &length), throw_runtime,
             "repeat_interleave(repeats): the result of %lld repetitions for shape %s has too many elements",
             (long long)repeats, to_string(source.sizes()).c_str());
    check_output_size(output_size, length);
    bool joins = repeats > 1 && source.sizes()[d] > 1 && source.strides()[d] != 0;  // as in `repeat`
    Tensor spread_out = ops::expand(ops::unsqueeze(source, d + 1), spread, false);
    joins = joins && spread_out.numel() > 0;
    return ops::reshape(joins ? spread_out : ops::clone(spread_out, "contiguous"), joined);
}

Tensor repeat_interleave_tensor(const Tensor& input, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
    Tensor source = dim ? input : ops::flatten(input);
    int d = wrap_dim("repeat_interleave", dim.value_or(0), source.dim());
    return ops::index_select(source, d,
                             repeat_index(repeats, source.dim() ? source.sizes()[d] : 1, output_size));
}

Tensor repeat_interleave_repeats(const Tensor& repeats, std::optional<int64_t> output_size) {
    RL_CHECK(repeats.dim() == 1, throw_runtime,
             "repeat_interleave(repeats): must have one dimension, got shape %s",
             to_string(repeats.sizes()).c_str());
    return ops::to(repeat_index(repeats, repeats.numel(), output_size), repeats.dtype());
}

}  // namespace rushlight::composites
