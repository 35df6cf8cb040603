#include "cpu/optimizer.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/optimizer_kernels.h"
#include "cpu/streaming.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int kMostOperands = 5;  // of Adam with amsgrad, which has the most

// One parameter with its gradient and state. In `flat`, the elements of all tensors are in the same order.
constexpr int kGradient = 1;  // its position; the only tensor that is not written
struct Group {
    View given[kMostOperands];  // the parameter first; a view is undefined if its list is empty
    View flat[kMostOperands];
    int64_t numel;
};

double number(const View& v) { return v.dtype == DType::Float64 ? *v.as<double>() : *v.as<float>(); }

// Whether v covers its memory without gaps or overlaps, in any order of its dimensions.
bool is_dense(const View& v) {
    if (v.contiguous) return true;
    int order[64];
    int n = 0;
    for (int d = 0; d < v.ndim; ++d) {
        if (v.sizes[d] != 1) order[n++] = d;
    }
    std::sort(order, order + n, [&](int a, int b) { return v.strides[a] < v.strides[b]; });
    int64_t step = 1;
    for (int i = 0; i < n; ++i) {
        if (v.strides[order[i]] != step) return false;
        step *= v.sizes[order[i]];
    }
    return true;
}

// Returns v with its dimensions in the order in which those of `param`, which is dense, lie in memory. So the parameter
// becomes row-major, as are the states, which have its layout; a gradient may have another.
View in_order_of(KernelContext& ctx, const View& param, const View& v) {
    if (param.contiguous || !v.defined()) return v;
    int order[64];
    for (int d = 0; d < v.ndim; ++d) order[d] = d;
    std::stable_sort(order, order + v.ndim,
                     [&](int a, int b) { return param.strides[a] > param.strides[b]; });
    auto* sizes = scratch<int64_t>(ctx, 2 * v.ndim);
    auto* strides = sizes + v.ndim;
    int64_t step = 1;
    bool contiguous = true;
    for (int d = v.ndim - 1; d >= 0; --d) {
        sizes[d] = v.sizes[order[d]];
        strides[d] = v.strides[order[d]];
        contiguous = contiguous && (sizes[d] == 1 || strides[d] == step);
        step *= sizes[d];
    }
    return {v.data, sizes, strides, v.numel, v.ndim, v.dtype, contiguous};
}

// Copies row-major values back to strided memory.
void scatter(const View& out, const View& dense) {
    const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
    int64_t place[64] = {};
    for (int64_t i = 0; i < out.numel; ++i) {
        int64_t offset = 0;
        for (int d = 0; d < out.ndim; ++d) offset += place[d] * out.strides[d];
        __builtin_memcpy(out.as<char>() + offset * item, dense.as<char>() + i * item,
                         static_cast<size_t>(item));
        for (int d = out.ndim - 1; d >= 0 && ++place[d] == out.sizes[d]; --d) place[d] = 0;
    }
}

// Calls update(group, index of the group, begin, end, larger_than_caches) for the elements of all groups. They are
// divided among threads in small pieces, so that all threads process about the same number of elements although the
// last piece of a tensor may not be full.
template <class Update>
void for_each_element(KernelContext& ctx, const char* op, Group* groups, int64_t count, Update&& update) {
    constexpr int64_t kPiece = 1 << 10, kPiecesOfThread = 64;
    int64_t* first_piece = scratch<int64_t>(ctx, count + 1);
    first_piece[0] = 0;
    int64_t nbytes = 0;
    for (int64_t i = 0; i < count; ++i) {
        Group& g = groups[i];
        const View& param = g.given[0];
        g.numel = param.numel;
        RL_CHECK(is_floating(param.dtype), throw_not_implemented, "%s: no kernel for dtype %s on the CPU", op,
                 name(param.dtype));
        for (const View& v : g.given) {
            if (!v.defined()) continue;
            RL_CHECK(v.dtype == param.dtype && v.numel == param.numel, throw_runtime,
                     "%s: parameter %lld has dtype %s and %lld elements, but its gradient or state has dtype "
                     "%s and %lld elements",
                     op, static_cast<long long>(i), name(param.dtype), static_cast<long long>(param.numel),
                     name(v.dtype), static_cast<long long>(v.numel));
            nbytes += v.numel * static_cast<int64_t>(itemsize(v.dtype));
        }
        const bool dense = is_dense(param);
        const View given = param;
        for (View& v : g.given) {
            if (dense) v = in_order_of(ctx, given, v);
            g.flat[&v - g.given] = contiguous_in(ctx, v);
        }
        first_piece[i + 1] = first_piece[i] + (g.numel + kPiece - 1) / kPiece;
    }
    parallel_for(0, first_piece[count], kPiecesOfThread, [&](int64_t begin, int64_t end) {
        int64_t i = std::upper_bound(first_piece, first_piece + count + 1, begin) - first_piece - 1;
        for (int64_t p = begin; p < end;) {
            while (first_piece[i + 1] <= p) ++i;  // also skips tensors without elements
            const int64_t last = std::min(end, first_piece[i + 1]);
            update(groups[i], i, (p - first_piece[i]) * kPiece,
                   std::min(groups[i].numel, (last - first_piece[i]) * kPiece), worth_streaming(nbytes));
            p = last;
        }
    });
    for (int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < kMostOperands; ++k) {
            if (k != kGradient && groups[i].flat[k].data != groups[i].given[k].data)
                scatter(groups[i].given[k], groups[i].flat[k]);
        }
    }
}

View entry(Views list, int64_t i) {
    return list.size == 0 ? View{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0} : list[i];
}

bool is_off(const View& found_inf) { return found_inf.defined() && number(found_inf) != 0; }

double scale_of(const View& grad_scale) { return grad_scale.defined() ? number(grad_scale) : 1; }

void adam(KernelContext& ctx, const char* op, bool decoupled, Views params, Views grads, Views exp_avgs,
          Views exp_avg_sqs, Views max_exp_avg_sqs, Views steps, const View& grad_scale,
          const View& found_inf, double lr, double beta1, double beta2, double weight_decay, double eps,
          bool amsgrad, bool maximize) {
    if (is_off(found_inf)) return;
    Group* groups = scratch<Group>(ctx, params.size);
    for (int64_t i = 0; i < params.size; ++i) {
        groups[i] = {
            {params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], entry(amsgrad ? max_exp_avg_sqs : Views{}, i)},
            {},
            0};
    }
    const double scale = scale_of(grad_scale);
    for_each_element(ctx, op, groups, params.size,
                     [&](const Group& g, int64_t i, int64_t begin, int64_t end, bool larger_than_caches) {
                         const AdamStep step{g.flat[0].data,
                                             g.flat[1].data,
                                             g.flat[2].data,
                                             g.flat[3].data,
                                             amsgrad ? g.flat[4].data : nullptr,
                                             scale,
                                             number(steps[i]),
                                             lr,
                                             beta1,
                                             beta2,
                                             weight_decay,
                                             eps,
                                             decoupled,
                                             maximize,
                                             larger_than_caches};
                         optimizer_kernels().adam(g.flat[0].dtype, step, begin, end);
                     });
}

}  // namespace

void fused_sgd(KernelContext& ctx, Views params, Views grads, Views momentum_buffers, const View& grad_scale,
               const View& found_inf, double weight_decay, double momentum, double lr, double dampening,
               bool nesterov, bool maximize, bool is_first_step) {
    if (is_off(found_inf)) return;
    const bool moving = momentum != 0;
    Group* groups = scratch<Group>(ctx, params.size);
    for (int64_t i = 0; i < params.size; ++i) {
        const View none = entry(Views{}, 0);
        groups[i] = {{params[i], grads[i], entry(moving ? momentum_buffers : Views{}, i), none, none}, {}, 0};
    }
    const double scale = scale_of(grad_scale);
    for_each_element(ctx, "fused_sgd", groups, params.size,
                     [&](const Group& g, int64_t, int64_t begin, int64_t end, bool larger_than_caches) {
                         const SgdStep step{g.flat[0].data,
                                            g.flat[1].data,
                                            moving ? g.flat[2].data : nullptr,
                                            scale,
                                            weight_decay,
                                            momentum,
                                            lr,
                                            dampening,
                                            nesterov,
                                            maximize,
                                            is_first_step,
                                            larger_than_caches};
                         optimizer_kernels().sgd(g.flat[0].dtype, step, begin, end);
                     });
}

void fused_adam(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize) {
    adam(ctx, "fused_adam", false, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, grad_scale,
         found_inf, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}

void fused_adamw(KernelContext& ctx, Views params, Views grads, Views exp_avgs, Views exp_avg_sqs,
                 Views max_exp_avg_sqs, Views steps, const View& grad_scale, const View& found_inf, double lr,
                 double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize) {
    adam(ctx, "fused_adamw", true, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, grad_scale,
         found_inf, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}

}  // namespace rushlight::cpu
