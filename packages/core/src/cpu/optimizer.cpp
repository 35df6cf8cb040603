#include "cpu/optimizer.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/optimizer_kernels.h"
#include "cpu/streaming.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int kMostOperands = 5;  // Adam with amsgrad has the largest number

// One parameter with its gradient and state, in this order. In `flat`, the elements of all tensors are in the same
// order.
constexpr int kGradient = 1;  // the gradient's position; it is the only tensor that is not written
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

// The elements of all groups, in small pieces that are divided among threads, so that all threads process about the same
// number of elements although the last piece of a tensor may not be full.
class Elements {
  public:
    // Checks all tensors, before any is written.
    Elements(KernelContext& ctx, const char* op, Group* groups, int64_t count)
        : groups_(groups), count_(count), first_piece_(scratch<int64_t>(ctx, count + 1)) {
        first_piece_[0] = 0;
        for (int64_t i = 0; i < count; ++i) {
            Group& g = groups[i];
            const View& param = g.given[0];
            g.numel = param.numel;
            RL_CHECK(is_floating(param.dtype), throw_not_implemented, "%s: no kernel for dtype %s on the CPU",
                     op, name(param.dtype));
            for (const View& v : g.given) {
                if (!v.defined()) continue;
                RL_CHECK(v.dtype == param.dtype && v.numel == param.numel, throw_runtime,
                         "%s: parameter %lld has dtype %s and %lld elements, but its gradient or state has "
                         "dtype %s and %lld elements",
                         op, static_cast<long long>(i), name(param.dtype),
                         static_cast<long long>(param.numel), name(v.dtype), static_cast<long long>(v.numel));
                nbytes_ += v.numel * static_cast<int64_t>(itemsize(v.dtype));
            }
            const bool dense = is_dense(param);
            const View given = param;
            for (View& v : g.given) {
                if (dense) v = in_order_of(ctx, v, given);
                g.flat[&v - g.given] = contiguous_in(ctx, v);
            }
            first_piece_[i + 1] = first_piece_[i] + (g.numel + kPiece - 1) / kPiece;
        }
    }

    // Calls update(group, index of the group, begin, end, larger_than_caches) for the elements of all groups.
    template <class Update>
    void for_each(Update&& update) {
        parallel_for(0, first_piece_[count_], kPiecesOfThread, [&](int64_t begin, int64_t end) {
            int64_t i = std::upper_bound(first_piece_, first_piece_ + count_ + 1, begin) - first_piece_ - 1;
            for (int64_t p = begin; p < end;) {
                while (first_piece_[i + 1] <= p) ++i;  // also skips tensors without elements
                const int64_t last = std::min(end, first_piece_[i + 1]);
                update(groups_[i], i, (p - first_piece_[i]) * kPiece,
                       std::min(groups_[i].numel, (last - first_piece_[i]) * kPiece),
                       worth_streaming(nbytes_));
                p = last;
            }
        });
        for (int64_t i = 0; i < count_; ++i) {
            const Group& g = groups_[i];
            for (int k = 0; k < kMostOperands; ++k) {
                if (k != kGradient && g.flat[k].data != g.given[k].data) scatter(g.given[k], g.flat[k]);
            }
        }
    }

  private:
    static constexpr int64_t kPiece = 1 << 10, kPiecesOfThread = 64;
    Group* groups_;
    int64_t count_;
    int64_t* first_piece_;
    int64_t nbytes_ = 0;
};

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
    Elements(ctx, op, groups, params.size)
        .for_each([&](const Group& g, int64_t i, int64_t begin, int64_t end, bool larger_than_caches) {
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

steps::Number step_number(const View& v) { return {number(v), v.dtype != DType::Float64}; }

void store(const View& v, const steps::Number& n) {
    if (n.single) *v.as<float>() = static_cast<float>(n.value);
    else *v.as<double>() = n.value;
}

// Takes a step of an optimizer that counts its own steps: Note [Steps that count].
template <class Kind>
void take_step(KernelContext& ctx, const char* op, const Kind& kind, Views params, Views grads,
               const Views (&states)[Kind::kStates], const Views (&numbers)[Kind::kNumbers]) {
    Group* groups = scratch<Group>(ctx, params.size);
    auto* updates = scratch<typename Kind::Update>(ctx, params.size);
    for (int64_t i = 0; i < params.size; ++i) {
        const View none = entry(Views{}, 0);
        groups[i] = {{params[i], grads[i], none, none, none}, {}, 0};
        for (int k = 0; k < Kind::kStates; ++k) groups[i].given[2 + k] = states[k][i];
    }
    Elements elements(ctx, op, groups, params.size);
    for (int64_t i = 0; i < params.size; ++i) {
        steps::Number own[Kind::kNumbers];
        for (int k = 0; k < Kind::kNumbers; ++k) own[k] = step_number(numbers[k][i]);
        updates[i] = kind.begin(own);
        for (int k = 0; k < Kind::kNumbers; ++k) store(numbers[k][i], own[k]);
    }
    const auto& kernel = static_cast<const StepKernel<Kind>&>(optimizer_kernels().steps);
    elements.for_each([&](const Group& g, int64_t i, int64_t begin, int64_t end, bool larger_than_caches) {
        const StepArrays arrays{g.flat[0].data,
                                g.flat[1].data,
                                {g.flat[2].data, g.flat[3].data, g.flat[4].data},
                                larger_than_caches};
        kernel.run(g.flat[0].dtype, arrays, kind.gradient, updates[i], begin, end);
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
    Elements(ctx, "fused_sgd", groups, params.size)
        .for_each([&](const Group& g, int64_t, int64_t begin, int64_t end, bool larger_than_caches) {
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

void rmsprop_step(KernelContext& ctx, Views params, Views grads, Views squares, Views means, Views buffers,
                  Views counts, double lr, double alpha, double eps, double weight_decay, double momentum,
                  bool centered, bool maximize) {
    const auto take = [&]<bool kCentered, bool kMomentum>(const auto&... states) {
        const steps::Rmsprop<kCentered, kMomentum> kind{{maximize, weight_decay}, lr, alpha, eps, momentum};
        take_step(ctx, "_rmsprop_step_", kind, params, grads, {squares, states...}, {counts});
    };
    if (momentum > 0)
        centered ? take.operator()<true, true>(means, buffers) : take.operator()<false, true>(buffers);
    else centered ? take.operator()<true, false>(means) : take.operator()<false, false>();
}

void adagrad_step(KernelContext& ctx, Views params, Views grads, Views sums, Views counts, double lr,
                  double lr_decay, double eps, double weight_decay, bool maximize) {
    const steps::Adagrad kind{{maximize, weight_decay}, lr, lr_decay, eps};
    take_step(ctx, "_adagrad_step_", kind, params, grads, {sums}, {counts});
}

void adadelta_step(KernelContext& ctx, Views params, Views grads, Views squares, Views changes, Views counts,
                   double lr, double rho, double eps, double weight_decay, bool maximize) {
    const steps::Adadelta kind{{maximize, weight_decay}, lr, rho, eps};
    take_step(ctx, "_adadelta_step_", kind, params, grads, {squares, changes}, {counts});
}

void adamax_step(KernelContext& ctx, Views params, Views grads, Views means, Views largest, Views counts,
                 double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize) {
    const steps::Adamax kind{{maximize, weight_decay}, lr, beta1, beta2, eps};
    take_step(ctx, "_adamax_step_", kind, params, grads, {means, largest}, {counts});
}

void nadam_step(KernelContext& ctx, Views params, Views grads, Views means, Views squares, Views products,
                Views counts, double lr, double beta1, double beta2, double eps, double weight_decay,
                double momentum_decay, bool decoupled, bool maximize) {
    const steps::Nadam kind{{maximize, decoupled ? 0 : weight_decay},
                            lr,
                            beta1,
                            beta2,
                            eps,
                            decoupled ? weight_decay : 0,
                            momentum_decay};
    take_step(ctx, "_nadam_step_", kind, params, grads, {means, squares}, {products, counts});
}

void radam_step(KernelContext& ctx, Views params, Views grads, Views means, Views squares, Views counts,
                double lr, double beta1, double beta2, double eps, double weight_decay, bool decoupled,
                bool maximize) {
    const steps::Radam kind{
        {maximize, decoupled ? 0 : weight_decay}, lr, beta1, beta2, eps, decoupled ? weight_decay : 0};
    take_step(ctx, "_radam_step_", kind, params, grads, {means, squares}, {counts});
}

void rprop_step(KernelContext& ctx, Views params, Views grads, Views prevs, Views lengths, Views counts,
                double etaminus, double etaplus, double shortest, double longest, bool maximize) {
    const steps::Rprop kind{{maximize, 0}, etaminus, etaplus, shortest, longest};
    take_step(ctx, "_rprop_step_", kind, params, grads, {prevs, lengths}, {counts});
}

void asgd_step(KernelContext& ctx, Views params, Views grads, Views averages, Views shares, Views rates,
               Views counts, double lr, double lambd, double alpha, double t0, double weight_decay,
               bool maximize) {
    const steps::Asgd kind{{maximize, weight_decay}, lr, lambd, alpha, t0};
    take_step(ctx, "_asgd_step_", kind, params, grads, {averages}, {shares, rates, counts});
}

}  // namespace rushlight::cpu
