// Sampling of images at arbitrary coordinates.
#include <limits>

#include "bodies/resampling.h"
#include "ops/differentiated.h"
#include "ops/views.h"
#include "rushlight/ops/_grid_sample.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clamp.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/floor.h"
#include "rushlight/ops/fmod.h"
#include "rushlight/ops/gather.h"
#include "rushlight/ops/ge.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/isnan.h"
#include "rushlight/ops/logical_and.h"
#include "rushlight/ops/logical_not.h"
#include "rushlight/ops/logical_or.h"
#include "rushlight/ops/lt.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/remainder.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/round.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sign.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"

namespace rushlight::composites {
namespace {

enum Mode : int64_t { kLinear, kNearest, kCubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

struct Tap {
    Tensor at, weight;
};

Tensor times(const Tensor& t, double factor) { return ops::mul(t, Scalar(factor)); }
Tensor plus(const Tensor& t, double term) { return ops::add(t, Scalar(term)); }
Tensor minus(double from, const Tensor& t) { return ops::sub(Scalar(from), t); }

// Maps all coordinates to coordinates within the input, except with zero padding.
Tensor padded(Tensor x, int64_t size, int64_t padding, bool align) {
    if (padding == kZeros) return x;
    const double last = static_cast<double>(size - 1);
    if (padding == kReflection) {
        const double low = align ? 0.0 : -0.5, span = align ? last : last + 1;
        if (span == 0) {
            x = times(x, 0);
        } else {
            x = ops::abs(plus(x, -low));
            Tensor turns = ops::floor(ops::div(ops::detach(x), Scalar(span)));
            Tensor rest = ops::fmod(x, Scalar(span));
            x = ops::where(ops::eq(ops::remainder(turns, Scalar(2)), Scalar(0)), plus(rest, low),
                           minus(low + span, rest));
        }
    }
    // NaN is replaced by the first position. The derivative of a coordinate that equals a limit is zero, too.
    const Tensor moves = ops::logical_and(ops::gt(x, Scalar(0)), ops::lt(x, Scalar(last)));
    const Tensor fixed = ops::detach(x);
    return ops::where(moves, x,
                      ops::clamp(ops::where(ops::isnan(fixed), Scalar(0), fixed), Scalar(0), Scalar(last)));
}

// Keys' kernel with a = -0.75.
Tensor near(const Tensor& x) { return plus(ops::mul(ops::mul(plus(times(x, 1.25), -2.25), x), x), 1); }
Tensor far(const Tensor& x) {
    return plus(ops::mul(plus(ops::mul(plus(times(x, -0.75), 3.75), x), -6), x), 3);
}

std::vector<Tap> taps_of(Tensor x, int64_t size, int64_t mode, int64_t padding, bool align) {
    if (mode == kCubic) {
        Tensor low = ops::floor(ops::detach(x)), f = ops::sub(x, low);
        const Tensor weights[] = {far(plus(f, 1)), near(f), near(minus(1, f)), far(minus(2, f))};
        std::vector<Tap> taps;
        for (int k = 0; k < 4; ++k)
            taps.push_back({padded(plus(low, k - 1), size, padding, align), weights[k]});
        return taps;
    }
    x = padded(x, size, padding, align);
    if (mode == kNearest) {
        // The weight is one, and its gradient is zero.
        return {{ops::round(ops::detach(x)),
                 plus(times(ops::where(ops::isnan(x), Scalar(0), ops::sign(x)), 0), 1)}};
    }
    Tensor low = ops::floor(ops::detach(x));
    return {{low, ops::sub(plus(low, 1), x)}, {plus(low, 1), ops::sub(x, low)}};
}

void check(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding) {
    const int64_t dims = input.dim() - 2;
    RL_CHECK(
        (dims == 2 || dims == 3) && grid.dim() == input.dim() && grid.size(-1) == dims, throw_runtime,
        "grid_sample(input, grid): must have the shapes (N, C, H, W) and (N, H_out, W_out, 2), or (N, C, D, H, W) and "
        "(N, D_out, H_out, W_out, 3), "
        "got shapes %s and %s",
        to_string(input.sizes()).c_str(), to_string(grid.sizes()).c_str());
    RL_CHECK(input.size(0) == grid.size(0), throw_runtime,
             "grid_sample(input, grid): must have the same batch size (dimension 0), got %lld and %lld",
             (long long)input.size(0), (long long)grid.size(0));
    RL_CHECK(input.is_floating_point() && input.dtype() == grid.dtype(), throw_runtime,
             "grid_sample(input, grid): need one floating dtype, got %s and %s", name(input.dtype()),
             name(grid.dtype()));
    for (int64_t d = 2; d < input.dim(); ++d)
        RL_CHECK(input.sizes()[d] > 0, throw_runtime,
                 "grid_sample(input): shape %s has no elements to sample", to_string(input.sizes()).c_str());
    RL_CHECK(mode >= 0 && mode <= 2, throw_value,
             "grid_sample(mode): got %lld, needs 0 (bilinear), 1 (nearest) or 2 (bicubic)", (long long)mode);
    RL_CHECK(padding >= 0 && padding <= 2, throw_value,
             "grid_sample(padding_mode): got %lld, needs 0 (zeros), 1 (border) or 2 (reflection)",
             (long long)padding);
    RL_CHECK(mode != kCubic || dims == 2, throw_runtime,
             "grid_sample(mode): 'bicubic' requires an input (N, C, H, W), got shape %s",
             to_string(input.sizes()).c_str());
}

}  // namespace

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
    check(input, grid, mode, padding);
    const int64_t dims = input.dim() - 2, batch = input.size(0), channels = input.size(1);
    int64_t length = 1, positions = 1;
    for (int64_t d = 2; d < input.dim(); ++d) length *= input.sizes()[d];
    for (int64_t d = 1; d < grid.dim() - 1; ++d) positions *= grid.sizes()[d];
    if (!differentiated(input, grid) && length <= INT32_MAX)
        return ops::_grid_sample(input, grid, mode, padding, align);
    if (const DType compute = compute_dtype(input.dtype()); compute != input.dtype()) {
        // Half types cannot represent the coordinates of a large image, and lose digits in the sums.
        const Tensor sampled =
            grid_sampler(ops::to(input, compute), ops::to(grid, compute), mode, padding, align);
        return ops::to(sampled, input.dtype());
    }

    // Gathers once for each combination of the taps of all dimensions, starting with the last dimension.
    const int64_t flat_shape[] = {batch, channels, length}, split_at[] = {batch, positions},
                  wide[] = {batch, channels, positions};
    Tensor flat = ops::reshape(input, flat_shape);
    std::vector<Tap> corners;
    Tensor nowhere, coordinates;
    int64_t step = 1;
    for (int64_t d = 0; d < dims; ++d) {
        const int64_t size = input.size(-1 - d);
        const double n = static_cast<double>(size);
        Tensor x = plus(ops::reshape(ops::select(grid, -1, d), split_at), 1);
        x = align ? times(x, 0.5 * (n - 1)) : times(plus(times(x, n), -1), 0.5);
        coordinates = coordinates.defined() ? ops::add(coordinates, x) : x;
        const std::vector<Tap> before = std::move(corners);
        corners.clear();
        for (const Tap& tap : taps_of(x, size, mode, padding, align)) {
            Tensor inside = ops::logical_and(ops::ge(tap.at, Scalar(0)), ops::lt(tap.at, Scalar(size)));
            Tensor weight = ops::where(inside, tap.weight, Scalar(0));
            // A coordinate that is NaN or infinite has no neighbours, and its sample is NaN.
            Tensor lost = ops::logical_and(ops::isnan(ops::detach(tap.weight)), ops::logical_not(inside));
            nowhere = nowhere.defined() ? ops::logical_or(nowhere, lost) : lost;
            Tensor at =
                ops::mul(ops::_to_copy(ops::where(inside, ops::detach(tap.at), Scalar(0)), DType::Int64),
                         Scalar(step));
            if (d == 0) corners.push_back({at, weight});
            for (const Tap& c : before) corners.push_back({ops::add(c.at, at), ops::mul(c.weight, weight)});
        }
        step *= size;
    }
    Tensor result;
    for (const Tap& c : corners) {
        Tensor index = ops::expand(ops::unsqueeze(c.at, 1), wide, false);
        Tensor part = ops::mul(ops::gather(flat, 2, index), ops::unsqueeze(c.weight, 1));
        result = result.defined() ? ops::add(result, part) : part;
    }
    // The gradients of such coordinates are NaN, too, and their contributions to the gradient of the input are zero.
    const Tensor lost =
        times(ops::where(nowhere, coordinates, Scalar(0)), std::numeric_limits<double>::quiet_NaN());
    result = ops::where(ops::unsqueeze(nowhere, 1), ops::unsqueeze(lost, 1), result);
    std::vector<int64_t> shape{batch, channels};
    shape.insert(shape.end(), grid.sizes().begin() + 1, grid.sizes().end() - 1);
    return ops::reshape(result, shape);
}

namespace {

void check_dims(const char* op, const Tensor& input, int64_t dims) {
    RL_CHECK(input.dim() == dims, throw_runtime, "%s(input): needs %lld dimensions, got shape %s", op,
             (long long)dims, to_string(input.sizes()).c_str());
}

}  // namespace

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
    check_dims("grid_sampler_2d", input, 4);
    return grid_sampler(input, grid, mode, padding, align);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
    check_dims("grid_sampler_3d", input, 5);
    return grid_sampler(input, grid, mode, padding, align);
}

}  // namespace rushlight::composites
