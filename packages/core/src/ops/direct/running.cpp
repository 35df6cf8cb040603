// Running sums, products and extremes along a dimension.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "bodies/order.h"
#include "bodies/running.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// A row-major tensor as (outer, n, inner), walked in blocks of lines side by side, so that memory is read in order whatever
// the dimension. Lines are independent: threads change no result.
struct Blocks {
    static constexpr int64_t kWidth = 32, kRows = 4;
    int64_t outer = 1, n = 1, inner = 1;

    Blocks(const Tensor& t, int dim) {
        for (int d = 0; d < t.dim(); ++d) (d < dim ? outer : d == dim ? n : inner) *= t.sizes()[d];
    }
    // Lines of a block lie `apart`; of the last dimension, a few are taken at a time, since each waits for its last sum.
    int64_t apart() const { return inner == 1 ? n : 1; }
    // body(first, width): of `width` lines the first element of the first; steps are `inner` apart.
    template <class Body>
    void each(Body body) const {
        if (n == 0) return;
        const int64_t lines = inner == 1 ? outer : inner, most = inner == 1 ? kRows : kWidth;
        const int64_t across = (lines + most - 1) / most, work = n * std::min(lines, most);
        parallel_for(0, inner == 1 ? across : outer * across, std::max<int64_t>(1, (1 << 15) / work),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t b = begin; b < end; ++b) {
                             const int64_t at = b % across * most;
                             body(b / across * n * inner + at * apart(), std::min(most, lines - at));
                         }
                     });
    }
};

// y = step(state, x) for every element, with a state for each line.
template <class State, class T, class Step>
void run(const Blocks& blocks, State start, const T* x, Step step) {
    const int64_t n = blocks.n, inner = blocks.inner;
    if (inner > 1)
        return blocks.each([&](int64_t first, int64_t width) {
            State state[Blocks::kWidth];
            std::fill_n(state, width, start);
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < width; ++j) {
                    const int64_t at = first + i * inner + j;
                    step(state[j], x[at], at, i);
                }
        });
    blocks.each([&](int64_t first, int64_t width) {
        if (width == Blocks::kRows) {
            static_assert(Blocks::kRows == 4);
            State a = start, b = start, c = start, d = start;
            for (int64_t i = 0, at = first; i < n; ++i, ++at) {
                step(a, x[at], at, i);
                step(b, x[at + n], at + n, i);
                step(c, x[at + 2 * n], at + 2 * n, i);
                step(d, x[at + 3 * n], at + 3 * n, i);
            }
            return;
        }
        for (int64_t j = 0; j < width; ++j) {
            State state = start;
            for (int64_t i = 0, at = first + j * n; i < n; ++i, ++at) step(state, x[at], at, i);
        }
    });
}

// In double precision or 64 bits, rounded once for each element.
template <class Combine>
Tensor accumulate(const char* op, const Tensor& input, int64_t dim, std::optional<DType> dtype, int start,
                  Combine combine) {
    host_only(op, input);
    const int d = wrap_dim(op, dim, input.dim());
    const DType result = dtype.value_or(is_integral(input.dtype(), true) ? DType::Int64 : input.dtype());
    Tensor out = make_tensor(input.sizes(), result, input.device());
    if (is_meta(input) || out.numel() == 0) return out;
    const Tensor x = row_major(input, result);
    if (result == DType::Bool) {  // every sum or product is true or false
        Tensor wide = accumulate(op, x, dim, DType::Int64, start, combine);
        copy_into(out, wide);
        return out;
    }
    with_number(op, result, [&](auto zero) {
        using T = decltype(zero);
        using State = std::conditional_t<kIsComplex<T>, Complex<double>,
                                         std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;
        T* y = out.data<T>();
        run(Blocks(x, d), static_cast<State>(start), x.data<T>(),
            [&](State& state, T v, int64_t at, int64_t) {
                state = combine(state, static_cast<State>(static_cast<Computed<T>>(v)));
                y[at] = static_cast<T>(static_cast<Computed<T>>(state));
            });
    });
    return out;
}

// keeps(x, best): whether x takes the place of the best so far.
template <class Keeps>
std::tuple<Tensor, Tensor> running_extreme(const char* op, const Tensor& input, int64_t dim, Keeps keeps) {
    host_only(op, input);
    const int d = wrap_dim(op, dim, input.dim());
    Tensor values = make_tensor(input.sizes(), input.dtype(), input.device()),
           indices = make_tensor(input.sizes(), DType::Int64, input.device());
    if (is_meta(input) || values.numel() == 0) return {values, indices};
    const Tensor x = row_major(input);
    with_type(op, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        struct Best {
            T value;
            int64_t index;
        };
        T* value = values.data<T>();
        int64_t* index = indices.data<int64_t>();
        run(Blocks(x, d), Best{T{}, 0}, x.data<T>(), [&](Best& best, T v, int64_t at, int64_t i) {
            const Computed<T> a = v, b = best.value;
            if (i == 0 || a != a || keeps(a, b)) best = {v, i};
            value[at] = best.value;
            index[at] = best.index;
        });
    });
    return {values, indices};
}

}  // namespace

Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return accumulate("cumsum", input, dim, dtype, 0, [](auto a, auto b) { return a + b; });
}
Tensor cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return accumulate("cumprod", input, dim, dtype, 1, [](auto a, auto b) { return a * b; });
}

std::tuple<Tensor, Tensor> cummax(const Tensor& input, int64_t dim) {
    return running_extreme("cummax", input, dim, [](auto x, auto best) { return x >= best; });
}
std::tuple<Tensor, Tensor> cummin(const Tensor& input, int64_t dim) {
    return running_extreme("cummin", input, dim, [](auto x, auto best) { return x <= best; });
}

Tensor logcumsumexp(const Tensor& input, int64_t dim) {
    host_only("logcumsumexp", input);
    const int d = wrap_dim("logcumsumexp", dim, input.dim());
    Tensor out = make_tensor(input.sizes(), input.dtype(), input.device());
    if (is_complex(input.dtype())) {
        // max + log(1 + exp(min - max)), max being what has the larger real part.
        using Number = std::complex<double>;
        with_number("logcumsumexp", input.dtype(), [&](auto zero) {
            using T = decltype(zero);
            if constexpr (kIsComplex<T>) {
                if (is_meta(input) || out.numel() == 0) return;
                const Tensor x = row_major(input);
                T* y = out.data<T>();
                const double least = -std::numeric_limits<double>::infinity();
                run(Blocks(x, d), Number(least, 0), x.data<T>(), [&](Number& sum, T v, int64_t at, int64_t) {
                    const Number a(static_cast<double>(v.re), static_cast<double>(v.im));
                    if (sum.real() == least) sum = a;
                    else if (a.real() > sum.real()) sum = a + std::log(1.0 + std::exp(sum - a));
                    else sum += std::log(1.0 + std::exp(a - sum));
                    y[at] = T(static_cast<Real<T>>(sum.real()), static_cast<Real<T>>(sum.imag()));
                });
            }
        });
        return out;
    }
    with_floating("logcumsumexp", input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        if (is_meta(input) || out.numel() == 0) return;
        const Tensor x = row_major(input);
        T* y = out.data<T>();
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        // The sum of exp(x - largest): the largest so far never overflows.
        struct Sum {
            double largest, scaled;
        };
        run(Blocks(x, d), Sum{-kInfinity, 0}, x.data<T>(), [&](Sum& s, T v, int64_t at, int64_t) {
            const double a = static_cast<Computed<T>>(v);
            if (a == s.largest) s.scaled += std::isfinite(a) || a > 0;
            else if (a < s.largest) s.scaled += std::exp(a - s.largest);
            else s = {a, s.scaled * std::exp(s.largest - a) + 1};
            y[at] = static_cast<T>(static_cast<Computed<T>>(s.largest + std::log(s.scaled)));
        });
    });
    return out;
}

Tensor _recurrence(const Tensor& factors, const Tensor& terms, int64_t dim, bool reverse) {
    host_only("_recurrence", terms);
    const int d = wrap_dim("_recurrence", dim, terms.dim());
    RL_CHECK(factors.dtype() == terms.dtype() && factors.shape() == terms.shape(), throw_runtime,
             "_recurrence(factors): must have the dtype and shape of terms, %s %s, got %s %s",
             name(terms.dtype()), to_string(terms.sizes()).c_str(), name(factors.dtype()),
             to_string(factors.sizes()).c_str());
    Tensor out = make_tensor(terms.sizes(), terms.dtype(), terms.device());
    RL_CHECK(is_differentiable(terms.dtype()), throw_not_implemented,
             "_recurrence: needs a floating-point tensor, got dtype %s", name(terms.dtype()));
    with_number("_recurrence", terms.dtype(), [&](auto zero) {
        using T = decltype(zero);
        using State = std::conditional_t<kIsComplex<T>, Complex<double>, double>;
        if (is_meta(terms) || out.numel() == 0) return;
        const Tensor f = row_major(factors), t = row_major(terms);
        const T *factor = f.data<T>(), *term = t.data<T>();
        T* y = out.data<T>();
        const Blocks blocks(t, d);
        blocks.each([&](int64_t first, int64_t width) {
            State state[Blocks::kWidth] = {};
            for (int64_t step = 0; step < blocks.n; ++step) {
                const int64_t i = reverse ? blocks.n - 1 - step : step;
                for (int64_t j = 0; j < width; ++j) {
                    const int64_t at = first + i * blocks.inner + j * blocks.apart();
                    if (step > 0)
                        state[j] = state[j] *
                                   State(static_cast<Computed<T>>(factor[reverse ? at + blocks.inner : at]));
                    state[j] = state[j] + State(static_cast<Computed<T>>(term[at]));
                    y[at] = static_cast<T>(static_cast<Computed<T>>(state[j]));
                }
            }
        });
    });
    return out;
}

}  // namespace rushlight::direct
