#include "cpu/scan_kernels.h"

#include "cpu/kernels/halves.h"
#include "cpu/kernels/simd.h"
#include "ops/functors/scan.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

using namespace functors;

// The state that is carried from one element to the next.
template <class T>
using State = ScanState<T>;

// --- loops over rows ---

constexpr int64_t kElementsPerThread = 1 << 15;
// Number of adjacent columns that are processed together, so that memory is read in order.
constexpr int64_t kWidth = 128;

// Calls row(first) for rows of adjacent elements, with the offset of their first element.
template <class Row>
void each_row(const SplitShape& s, Row&& row) {
    parallel_for(0, s.outer, kElementsPerThread / s.size + 1, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) row(o * s.size);
    });
}

// Calls block(first, width) for blocks of adjacent columns, with the offset of the first element of the first
// column. The elements of a column are `inner` apart.
template <class Block>
void each_block(const SplitShape& s, Block&& block) {
    const int64_t across = (s.inner + kWidth - 1) / kWidth;
    const int64_t work = s.size * (s.inner < kWidth ? s.inner : kWidth);
    parallel_for(0, s.outer * across, kElementsPerThread / work + 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
            const int64_t at = b % across * kWidth, left = s.inner - at;
            block(b / across * s.size * s.inner + at, left < kWidth ? left : kWidth);
        }
    });
}

// Calls step(state, at, i) for every element, with its offset `at` and its index i in the row. Every row has its
// own state.
template <class S, class Step>
void each_element(const SplitShape& s, S start, Step&& step) {
    if (s.inner == 1) {
        each_row(s, [&](int64_t first) {
            S state = start;
            for (int64_t i = 0; i < s.size; ++i) step(state, first + i, i);
        });
        return;
    }
    each_block(s, [&](int64_t first, int64_t width) {
        S state[kWidth];
        for (int64_t j = 0; j < width; ++j) state[j] = start;
        for (int64_t i = 0; i < s.size; ++i)
            for (int64_t j = 0; j < width; ++j) step(state[j], first + i * s.inner + j, i);
    });
}

// --- sums and products ---

struct Sum {
    static constexpr int kStart = 0;
    static constexpr double kLeast = 0;
    template <class V>
    RL_INLINE V join(V a, V b) {
        return a + b;
    }
};
struct Product {
    static constexpr int kStart = 1;
    static constexpr double kLeast = __DBL_MIN__;
    template <class V>
    RL_INLINE V join(V a, V b) {
        return a * b;
    }
};

template <class T, int kCount>
struct SomeOf {
    typedef T type __attribute__((vector_size(sizeof(T) * kCount)));
};

// Converts adjacent elements to a vector of states. narrow_to converts states to elements.
template <class T>
RL_INLINE Vec<State<T>> widened_at(const T* x) {
    constexpr int kL = kLanes<State<T>>;
#if !defined(__AVX512F__)
    // The compiler converts the halves of the vector separately.
    if constexpr (std::is_same_v<T, float>) return (Vec<double>)_mm256_cvtps_pd(_mm_loadu_ps(x));
#endif
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        typename SomeOf<T, kL>::type v;
        __builtin_memcpy(&v, x, sizeof v);
        return __builtin_convertvector(v, Vec<State<T>>);
    } else if constexpr (std::is_same_v<T, Half>) {
        return doubles_at(x);
    } else {
        State<T> v[kL];
        for (int l = 0; l < kL; ++l) v[l] = widened(x[l]);
        return load(v);
    }
}
template <class T>
RL_INLINE void narrow_to(T* y, Vec<State<T>> states) {
    constexpr int kL = kLanes<State<T>>;
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        const auto v = __builtin_convertvector(states, typename SomeOf<T, kL>::type);
        __builtin_memcpy(y, &v, sizeof v);
    } else if constexpr (std::is_same_v<T, Half>) {
        to_halves(y, states);
    } else {
        for (int l = 0; l < kL; ++l) y[l] = narrowed<T>(states[l]);
    }
}

// Moves the lanes up by `by`, and sets the lowest lanes to `start`.
template <int by, class S>
RL_INLINE Vec<S> moved_up(Vec<S> v, S start) {
    constexpr int kL = kLanes<S>;
    Vec<int64_t> from;
    for (int l = 0; l < kL; ++l) from[l] = l < by ? l : kL + l - by;
    return __builtin_shuffle(broadcast(start), v, from);
}

RL_INLINE bool all(Vec<int64_t> lanes) {
#if defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)lanes) == 0xff;
#else
    return _mm256_movemask_pd((__m256d)lanes) == 0xf;
#endif
}

// Returns the lanes that have not overflowed and, for products, have not underflowed. For these lanes, another
// order of operations changes only the rounding.
template <class Op>
RL_INLINE Vec<int64_t> in_range(Vec<double> v) {
    const auto size = (Vec<double>)((Vec<int64_t>)v & INT64_MAX);
    Vec<int64_t> fits = size <= __DBL_MAX__;
    if constexpr (Op::kLeast > 0) fits &= size >= Op::kLeast;
    return fits;
}

// Computes the results of `count` vectors, beginning with the state in all lanes of `carried`, and sets `carried` to the
// last state. Each vector is scanned independently of the vectors before it, and then combined with their state. Returns
// false and writes nothing if this order of operations would change a result by more than rounding.
template <class Op, int count, class T>
RL_INLINE bool scan_vectors(T* y, const T* x, Vec<State<T>>& carried) {
    using S = State<T>;
    constexpr int kL = kLanes<S>;
    const S start = S(Op::kStart);
    Vec<S> results[count];
    Vec<int64_t> fits = broadcast(int64_t(-1));
    Vec<S> last = carried;
    for (int k = 0; k < count; ++k) {
        Vec<S> v = widened_at(x + k * kL);
        v = Op::join(v, moved_up<1>(v, start));
        v = Op::join(v, moved_up<2>(v, start));
        if constexpr (kL > 4) v = Op::join(v, moved_up<4>(v, start));
        results[k] = Op::join(v, last);
        last = Op::join(last, __builtin_shuffle(v, broadcast(int64_t{kL - 1})));
        // Only float64 is checked, because products of a few floats stay in the range of double.
        if constexpr (std::is_same_v<T, double>) fits &= in_range<Op>(v) & in_range<Op>(results[k]);
    }
    if constexpr (std::is_same_v<T, double>) {
        if (!all(fits)) [[unlikely]]
            return false;
    }
    for (int k = 0; k < count; ++k) narrow_to(y + k * kL, results[k]);
    carried = last;
    return true;
}

template <class Op, class T>
void scan_row(T* y, const T* x, int64_t n) {
    State<T> carried = State<T>(Op::kStart);
    int64_t i = 0;
    const auto one_by_one = [&](int64_t end) {
        for (; i < end; ++i) {
            carried = Op::join(carried, widened(x[i]));
            y[i] = narrowed<T>(carried);
        }
    };
    if constexpr (!kIsComplex<T>) {
        constexpr int kVectors = std::is_same_v<T, double> ? 4 : 1;  // processed together
        constexpr int64_t kStep = kVectors * kLanes<State<T>>;
        Vec<State<T>> last = broadcast(carried);
        while (i + kStep <= n) {
            if (scan_vectors<Op, kVectors>(y + i, x + i, last)) [[likely]] {
                i += kStep;
            } else {
                carried = last[0];
                one_by_one(i + kStep);
                last = broadcast(carried);
            }
        }
        carried = last[0];
    }
    one_by_one(n);
}

// Scans rows of kSize elements. For so few elements, loops that the compiler unrolls are faster than vectors.
template <class Op, int kSize, class T>
void scan_short_rows(const SplitShape& s, T* y, const T* x) {
    parallel_for(0, s.outer, kElementsPerThread / kSize, [=](int64_t begin, int64_t end) {
        for (int64_t at = begin * kSize; at < end * kSize; at += kSize) {
            State<T> carried = State<T>(Op::kStart);
#pragma GCC unroll 4
            for (int i = 0; i < kSize; ++i) {
                carried = Op::join(carried, widened(x[at + i]));
                y[at + i] = narrowed<T>(carried);
            }
        }
    });
}

template <class Op, class T>
void scan(const SplitShape& s, void* out, const void* in) {
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, int64_t>) {
        if (s.inner == 1 && s.size == 2) return scan_short_rows<Op, 2>(s, y, x);
        if (s.inner == 1 && s.size == 3) return scan_short_rows<Op, 3>(s, y, x);
        if (s.inner == 1 && s.size == 4) return scan_short_rows<Op, 4>(s, y, x);
    }
    if (s.inner == 1) return each_row(s, [&](int64_t first) { scan_row<Op>(y + first, x + first, s.size); });
    each_element(s, State<T>(Op::kStart), [&](State<T>& state, int64_t at, int64_t) {
        state = Op::join(state, widened(x[at]));
        y[at] = narrowed<T>(state);
    });
}

// --- the logarithm of a sum of exponentials ---

template <class T>
void log_sum_exp(const SplitShape& s, void* out, const void* in) {
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    if constexpr (kIsComplex<T>) {
        each_element(s, Complex<double>(-INFINITY, 0), [&](Complex<double>& sum, int64_t at, int64_t) {
            sum = log_of_both(sum, widened(x[at]));
            y[at] = narrowed<T>(sum);
        });
    } else {
        each_element(s, LogSum::nothing(), [&](LogSum& sum, int64_t at, int64_t) {
            sum = sum.joined(LogSum::of(widened(x[at])));
            y[at] = narrowed<T>(sum.value());
        });
    }
}

// --- extremes ---

template <bool largest, class T>
void extreme(const SplitShape& s, void* values, int64_t* indices, const void* in) {
    struct Best {
        T value;
        int64_t index;
    };
    T* y = static_cast<T*>(values);
    const T* x = static_cast<const T*>(in);
    each_element(s, Best{T(), 0}, [&](Best& best, int64_t at, int64_t i) {
        if (i == 0 || replaces<largest>(Computed<T>(x[at]), Computed<T>(best.value))) best = {x[at], i};
        y[at] = best.value;
        indices[at] = best.index;
    });
}

// --- a linear recurrence ---

template <class T>
void recurrence(const SplitShape& s, void* out, const void* factors, const void* terms, bool reverse) {
    T* y = static_cast<T*>(out);
    const T *factor = static_cast<const T*>(factors), *term = static_cast<const T*>(terms);
    const int64_t forward = reverse ? -s.inner : s.inner, before = reverse ? s.inner : 0;
    const auto row = [&](int64_t first) {
        int64_t at = first + (reverse ? (s.size - 1) * s.inner : 0);
        State<T> state{};
        for (int64_t i = 0; i < s.size; ++i, at += forward) {
            if (i > 0) state = state * widened(factor[at + before]);
            state = state + widened(term[at]);
            y[at] = narrowed<T>(state);
        }
    };
    if (s.inner == 1) return each_row(s, row);
    each_block(s, [&](int64_t first, int64_t width) {
        State<T> state[kWidth] = {};
        int64_t at = first + (reverse ? (s.size - 1) * s.inner : 0);
        for (int64_t i = 0; i < s.size; ++i, at += forward)
            for (int64_t j = 0; j < width; ++j) {
                if (i > 0) state[j] = state[j] * widened(factor[at + j + before]);
                state[j] = state[j] + widened(term[at + j]);
                y[at + j] = narrowed<T>(state[j]);
            }
    });
}

// --- the table ---

template <class T>
constexpr void add(ScanKernels& k, DType dtype) {
    const int d = static_cast<int>(dtype);
    k.sum[d] = scan<Sum, T>;
    k.product[d] = scan<Product, T>;
    if constexpr (!kIsComplex<T>) {
        k.largest[d] = extreme<true, T>;
        k.smallest[d] = extreme<false, T>;
    }
    if constexpr (kIsComplex<T> || kIsHalf<T> || std::is_floating_point_v<T>) {
        k.log_sum_exp[d] = log_sum_exp<T>;
        k.recurrence[d] = recurrence<T>;
    }
}

constexpr ScanKernels make() {
    ScanKernels k{};
    const auto add_type = [&]<class T>(DType dtype) { add<T>(k, dtype); };
    add<bool>(k, DType::Bool);
    each_type(RealNumbers{}, add_type);
    each_type(ComplexOnly{}, add_type);
    return k;
}

}  // namespace

const ScanKernels scan_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
