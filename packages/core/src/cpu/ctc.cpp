#include "cpu/ctc.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/contiguous.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

template <class T> constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
    if (a < b) std::swap(a, b);
    return b == kNever<T> ? a : a + std::log1p(std::exp(b - a));
}

// One sequence of the batch. Its target has 2 length + 1 states: state s is a blank if s is even, otherwise label
// s / 2.
template <class T>
struct Sequence {
    const T* log_probs;  // the probabilities of time t begin at index t * step
    int64_t step;
    const int64_t* labels;
    int64_t time, length, blank;

    int64_t states() const { return 2 * length + 1; }
    int64_t label(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
    T log_prob(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
    // Whether state s may directly follow state s - 2: the blank between two different labels may be skipped.
    bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && label(s) != label(s - 2); }
    // Returns the logarithm of the summed probabilities of the last two states, in which a path may end.
    T at_end(const T* row) const {
        return length == 0 ? row[0] : log_add(row[states() - 1], row[states() - 2]);
    }
};

// Fills alpha (time, width) and returns the target's log-probability. alpha[t, s] is the log-probability of all
// paths that are in state s at time t; it includes the probability of time t.
template <class T>
T forward(const Sequence<T>& q, T* alpha, int64_t width) {
    for (int64_t i = 0; i < q.time * width; ++i) alpha[i] = kNever<T>;
    if (q.time == 0) return q.length == 0 ? T(0) : kNever<T>;
    alpha[0] = q.log_prob(0, 0);
    if (q.length > 0) alpha[1] = q.log_prob(0, 1);
    for (int64_t t = 1; t < q.time; ++t) {
        const T* old = alpha + (t - 1) * width;
        for (int64_t s = 0; s < q.states(); ++s) {
            T total = old[s];
            if (s > 0) total = log_add(total, old[s - 1]);
            if (q.skips(s)) total = log_add(total, old[s - 2]);
            alpha[t * width + s] = total + q.log_prob(t, s);
        }
    }
    return q.at_end(alpha + (q.time - 1) * width);
}

// Subtracts from `grad`, whose times are `step` apart, `scale` times the probability of each class at each time,
// given the target. `beta` (two rows) is alpha's counterpart computed from the end; it excludes the probability of
// the time itself.
template <class T>
void backward(const Sequence<T>& q, T* grad, T scale, const T* alpha, int64_t width, T* beta) {
    if (q.time == 0) return;
    const T total = q.at_end(alpha + (q.time - 1) * width);
    if (total == kNever<T>) return;
    T *now = beta, *later = beta + width;
    for (int64_t s = 0; s < q.states(); ++s) now[s] = s + 2 >= q.states() ? T(0) : kNever<T>;
    for (int64_t t = q.time - 1; t >= 0; --t) {
        if (t < q.time - 1) {
            std::swap(now, later);
            for (int64_t s = 0; s < q.states(); ++s) {
                T sum = later[s] + q.log_prob(t + 1, s);
                if (s + 1 < q.states()) sum = log_add(sum, later[s + 1] + q.log_prob(t + 1, s + 1));
                if (s + 2 < q.states() && q.skips(s + 2))
                    sum = log_add(sum, later[s + 2] + q.log_prob(t + 1, s + 2));
                now[s] = sum;
            }
        }
        for (int64_t s = 0; s < q.states(); ++s)
            grad[t * q.step + q.label(s)] -= scale * std::exp(alpha[t * width + s] + now[s] - total);
    }
}

class Batch {
  public:
    View log_probs, targets, input_lengths, target_lengths;
    int64_t blank;

    Batch(KernelContext& ctx, const View& log_probs, const View& targets, const View& input_lengths,
          const View& target_lengths, int64_t blank)
        : log_probs(contiguous_in(ctx, widened(ctx, log_probs))),
          targets(contiguous_in(ctx, targets)),
          input_lengths(contiguous_in(ctx, input_lengths)),
          target_lengths(contiguous_in(ctx, target_lengths)),
          blank(blank) {
        for (int64_t n = 0; n < count(); ++n) check(n);
    }
    int64_t time() const { return log_probs.size(0); }
    int64_t count() const { return log_probs.size(1); }
    int64_t classes() const { return log_probs.size(2); }
    int64_t width() const { return 2 * targets.size(1) + 1; }
    template <class T>
    Sequence<T> at(int64_t n) const {
        return {log_probs.as<T>() + n * classes(),
                count() * classes(),
                targets.as<int64_t>() + n * targets.size(1),
                input_lengths.as<int64_t>()[n],
                target_lengths.as<int64_t>()[n],
                blank};
    }

  private:
    // Checks the lengths and labels of sequence n, because the loops use them as indices.
    void check(int64_t n) const {
        const int64_t longest = targets.size(1), *labels = targets.as<int64_t>() + n * longest;
        const int64_t steps = input_lengths.as<int64_t>()[n], length = target_lengths.as<int64_t>()[n];
        RL_CHECK(steps >= 0 && steps <= time(), throw_runtime,
                 "ctc_loss(input_lengths): entry %lld must be from 0 to %lld, got %lld", (long long)n,
                 (long long)time(), (long long)steps);
        RL_CHECK(length >= 0 && length <= longest, throw_runtime,
                 "ctc_loss(target_lengths): entry %lld must be from 0 to %lld, got %lld", (long long)n,
                 (long long)longest, (long long)length);
        for (int64_t i = 0; i < length; ++i)
            RL_CHECK(labels[i] >= 0 && labels[i] < classes(), throw_runtime,
                     "ctc_loss(targets): label %lld of target %lld must be from 0 to %lld, got %lld",
                     (long long)i, (long long)n, (long long)classes() - 1, (long long)labels[i]);
    }
};

template <class F>
void with_type(DType dtype, F&& f) {
    if (dtype == DType::Float32) return f(float{});
    if (dtype == DType::Float64) return f(double{});
    throw_not_implemented("ctc_loss: no kernel for dtype %s on the CPU", name(dtype));
}

}  // namespace

void ctc_loss(KernelContext& ctx, const View& loss, const View& log_alpha, const View& log_probs,
              const View& targets, const View& input_lengths, const View& target_lengths, int64_t blank,
              bool zero_infinity) {
    const WidenedOut wide(ctx, loss);
    const Batch b(ctx, log_probs, targets, input_lengths, target_lengths, blank);
    with_type(b.log_probs.dtype, [&]<class T>(T) {
        T* result = wide.view().template as<T>();
        const int64_t table = b.time() * b.width();
        T* alpha = log_alpha.defined() ? log_alpha.as<T>() : scratch<T>(ctx, b.count() * table);
        parallel_for(0, b.count(), 1, [&](int64_t first, int64_t last) {
            for (int64_t n = first; n < last; ++n) {
                const T value = -forward(b.at<T>(n), alpha + n * table, b.width());
                result[n] = zero_infinity && std::isinf(value) ? T(0) : value;
            }
        });
    });
    wide.finish();
}

void ctc_loss_backward(KernelContext& ctx, const View& grad_log_probs, const View& grad_loss,
                       const View& log_probs, const View& targets, const View& input_lengths,
                       const View& target_lengths, const View& log_alpha, int64_t blank) {
    const WidenedOut wide(ctx, grad_log_probs);
    const Batch b(ctx, log_probs, targets, input_lengths, target_lengths, blank);
    const View dy = contiguous_in(ctx, widened(ctx, grad_loss)), alpha = contiguous_in(ctx, log_alpha);
    with_type(b.log_probs.dtype, [&]<class T>(T) {
        T* dx = wide.view().template as<T>();
        std::memset(dx, 0, sizeof(T) * static_cast<size_t>(grad_log_probs.numel));
        const int64_t width = b.width();
        T* beta = scratch<T>(ctx, b.count() * 2 * width);
        parallel_for(0, b.count(), 1, [&](int64_t first, int64_t last) {
            for (int64_t n = first; n < last; ++n)
                backward(b.at<T>(n), dx + n * b.classes(), dy.as<T>()[n],
                         alpha.as<T>() + n * b.time() * width, width, beta + n * 2 * width);
        });
    });
    wide.finish();
}

}  // namespace rushlight::cpu
