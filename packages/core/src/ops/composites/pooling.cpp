// One-dimensional pooling is two-dimensional pooling whose first dimension has size one.
#include "bodies/pooling.h"
#include "rushlight/ops/adaptive_avg_pool2d.h"
#include "rushlight/ops/adaptive_max_pool2d.h"
#include "rushlight/ops/avg_pool2d.h"
#include "rushlight/ops/max_pool2d.h"
#include "rushlight/ops/max_pool2d_with_indices.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

Tensor widen(const char* op, const Tensor& input) {
    RL_CHECK(input.dim() == 2 || input.dim() == 3, throw_runtime,
             "%s(input): needs 2 or 3 dimensions, got shape %s", op, to_string(input.sizes()).c_str());
    return ops::unsqueeze(input, -2);
}
Tensor narrow(const Tensor& t) { return ops::squeeze(t, kInts<-2>); }

// Extends a list of one number by `beside`, the number for the dimension of size one.
struct Pair {
    int64_t both[2];
    size_t count;
    Pair(const char* op, const char* name, int64_t beside, IntList one)
        : both{beside, one.empty() ? 0 : one[0]} {
        RL_CHECK(one.size() <= 1, throw_runtime, "%s(%s): needs one number, got %s", op, name,
                 to_string(one).c_str());
        count = one.empty() ? 0 : 2;
    }
    operator IntList() const { return {both, count}; }
};

}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, IntList kernel_size, IntList stride,
                                                   IntList padding, IntList dilation, bool ceil_mode) {
    const char* op = "max_pool1d";
    auto [values, indices] = ops::max_pool2d_with_indices(
        widen(op, input), Pair(op, "kernel_size", 1, kernel_size), Pair(op, "stride", 1, stride),
        Pair(op, "padding", 0, padding), Pair(op, "dilation", 1, dilation), ceil_mode);
    return {narrow(values), narrow(indices)};
}
Tensor max_pool1d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                  bool ceil_mode) {
    const char* op = "max_pool1d";
    return narrow(ops::max_pool2d(widen(op, input), Pair(op, "kernel_size", 1, kernel_size),
                                  Pair(op, "stride", 1, stride), Pair(op, "padding", 0, padding),
                                  Pair(op, "dilation", 1, dilation), ceil_mode));
}
Tensor avg_pool1d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                  bool count_include_pad) {
    const char* op = "avg_pool1d";
    return narrow(ops::avg_pool2d(widen(op, input), Pair(op, "kernel_size", 1, kernel_size),
                                  Pair(op, "stride", 1, stride), Pair(op, "padding", 0, padding), ceil_mode,
                                  count_include_pad, std::nullopt));
}
Tensor adaptive_avg_pool1d(const Tensor& input, IntList output_size) {
    const char* op = "adaptive_avg_pool1d";
    return narrow(ops::adaptive_avg_pool2d(widen(op, input), Pair(op, "output_size", 1, output_size)));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, IntList output_size) {
    const char* op = "adaptive_max_pool1d";
    auto [values, indices] =
        ops::adaptive_max_pool2d(widen(op, input), Pair(op, "output_size", 1, output_size));
    return {narrow(values), narrow(indices)};
}

}  // namespace rushlight::composites
