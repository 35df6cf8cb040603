// Reductions of rows of adjacent elements with explicit vectors. Included by reduce_loop.h only.
//
// The compiler vectorises the loops of accumulators.h, but it keeps the accumulators in memory, which takes most of the
// time if rows are short. Here they stay in registers. The end of a reduction is a sequence of dependent steps; it is
// executed for several rows at a time, each lane of a vector for one row. Each row is reduced by the same steps as in
// with_accumulators(), in the same order, so the results are equal bit for bit.
#pragma once

#include "cpu/kernels/short_rows.h"
#include "cpu/kernels/simd.h"
#include "ops/reducers/accumulators.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

/// Loads as many elements as a vector of A has lanes, and converts them. (__builtin_convertvector is not used, because GCC
/// implements it by converting each half of a vector and joining the halves.)
template <class A, class T>
RL_INLINE Vec<A> load_as(const T* p) {
    if constexpr (sizeof(A) == sizeof(T)) {
        static_assert(std::is_floating_point_v<A> == std::is_floating_point_v<T>);
        return (Vec<A>)load(p);
#if defined(__AVX512F__)
    } else if constexpr (std::is_same_v<T, float>) {
        return (Vec<A>)_mm512_cvtps_pd(_mm256_loadu_ps(p));
    } else {
        const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return (Vec<A>)(std::is_signed_v<T> ? _mm512_cvtepi32_epi64(narrow) : _mm512_cvtepu32_epi64(narrow));
    }
#else
    } else if constexpr (std::is_same_v<T, float>) {
        return (Vec<A>)_mm256_cvtps_pd(_mm_loadu_ps(p));
    } else {
        const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return (Vec<A>)(std::is_signed_v<T> ? _mm256_cvtepi32_epi64(narrow) : _mm256_cvtepu32_epi64(narrow));
    }
#endif
}

/// Reductions of rows of elements of type T by the reducer R. The functions exist only if the elements and the partial
/// results of R are numbers of 4 or 8 bytes.
template <class R, class T>
struct ReduceRows {
    static constexpr bool kFits = false, kVectors = false;
};
template <class T>
inline constexpr bool kFillsLane = std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);
template <class R, class T>
    requires(kFillsLane<typename R::Acc> && kFillsLane<T>)
struct ReduceRows<R, T> {
    using Acc = typename R::Acc;
    using Lane = std::conditional_t<sizeof(T) < sizeof(Acc), T, Acc>;  // the narrower type

    static constexpr bool kFits = true;
    static constexpr int64_t kCount = reducers::kAccumulators<Acc>;
    static constexpr int64_t kL = kVectorBytes / static_cast<int64_t>(sizeof(Acc));

    /// Whether the reducer's functions are defined for vectors as well as for numbers.
    static constexpr bool kVectors = requires(const R r, Vec<Acc> a) {
        r.step(a, a);
        r.join(a, a);
    };

    /// The number of short rows (with fewer than kCount elements) that are reduced together.
    static constexpr int64_t kShort = kVectorBytes / static_cast<int64_t>(sizeof(Lane));
    static void short_rows(const R& r, Acc* acc, const char* in, int64_t step, int64_t n) {
        alignas(64) T elements[kCount * kShort];
        transpose_rows<kShort>(elements, in, step, n);
        if constexpr (kVectors) {
            Vec<Acc> sums[kShort / kL];
            for (int64_t v = 0; v < kShort / kL; ++v) sums[v] = load(acc + v * kL);
            for (int64_t i = 0; i < n; ++i) take<kShort / kL>(r, sums, elements + i * kShort);
            for (int64_t v = 0; v < kShort / kL; ++v) store(acc + v * kL, sums[v]);
        } else {
            for (int64_t i = 0; i < n; ++i)
                for (int64_t l = 0; l < kShort; ++l) acc[l] = r.step(acc[l], elements[i * kShort + l]);
        }
    }

    /// Reduces kL rows of at least kCount elements.
    static void long_rows(const R& r, Acc* acc, const char* in, int64_t step, int64_t n) {
        alignas(64) Acc rows[kL * kL], sums[kL * kL];
        for (int64_t l = 0; l < kL; ++l)
            store(rows + l * kL, lanes_of_row(r, reinterpret_cast<const T*>(in + l * step), n));
        transpose_rows<kL>(sums, reinterpret_cast<const char*>(rows), kVectorBytes, kL);
        Vec<Acc> columns[kL];
        for (int64_t i = 0; i < kL; ++i) columns[i] = load(sums + i * kL);
        join_halves<kL>(r, columns);
        store(acc, r.join(load(acc), columns[0]));
    }

    /// Reduces one row of at least kCount elements.
    static Acc row(const R& r, const T* x, int64_t n) {
        Acc lanes[kL];
        store(lanes, lanes_of_row(r, x, n));
        return reducers::fold<kL>(lanes, [&](Acc a, Acc b) { return r.join(a, b); });
    }

    /// Combines the elements of kRows rows with the partial results of their columns, row after row. Only columns that
    /// fill whole vectors are processed. Returns their number.
    template <int kRows>
    static int64_t add_to_columns(const R& r, Acc* acc, const T* const (&rows)[kRows], int64_t count) {
        int64_t c = 0;
        for (; c + kL <= count; c += kL) {
            Vec<Acc> sum = load(acc + c);
#pragma GCC unroll 4
            for (int k = 0; k < kRows; ++k) take<1>(r, &sum, rows[k] + c);
            store(acc + c, sum);
        }
        return c;
    }

  private:
    template <int64_t count>
    RL_INLINE void join_halves(const R& r, Vec<Acc>* v) {
        if constexpr (count > 1) {
#pragma GCC unroll 8
            for (int64_t k = 0; k < count / 2; ++k) v[k] = r.join(v[k], v[k + count / 2]);
            join_halves<count / 2>(r, v);
        }
    }

    template <int64_t count>
    RL_INLINE void take(const R& r, Vec<Acc>* acc, const T* x) {
#pragma GCC unroll 8
        for (int64_t v = 0; v < count; ++v) acc[v] = r.step(acc[v], load_as<Acc>(x + v * kL));
    }

    // Accumulates the first min(count, kL) elements of x in the first lanes; the other lanes stay unchanged.
    RL_INLINE void take_some(const R& r, Vec<Acc>& acc, const T* x, int64_t count) {
        T padded[kL] = {};
        for (int64_t k = 0; k < kL && k < count; ++k) padded[k] = x[k];
        Vec<Acc> next = acc;
        take<1>(r, &next, padded);
        decltype(acc == acc) lane;
        for (int64_t k = 0; k < kL; ++k) lane[k] = static_cast<std::remove_reference_t<decltype(lane[0])>>(k);
        acc = lane < static_cast<std::remove_reference_t<decltype(lane[0])>>(count) ? next : acc;
    }

    template <int64_t count>
    RL_INLINE void take_rest(const R& r, Vec<Acc>* acc, const T*& x, int64_t& n) {
        if constexpr (count >= 8) {
            if (n >= count) {
                if constexpr (count >= kL) take<count / kL>(r, acc, x);
                else take_some(r, acc[0], x, count);
                x += count, n -= count;
            }
            take_rest<count / 2>(r, acc, x, n);
        } else {
#pragma GCC unroll 8
            for (int64_t v = 0; v * kL < 8; ++v)
                if (n > v * kL) take_some(r, acc[v], x + v * kL, n - v * kL);
        }
    }

    RL_INLINE Vec<Acc> lanes_of_row(const R& r, const T* x, int64_t n) {
        constexpr int64_t vectors = kCount / kL;
        Vec<Acc> acc[vectors];
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v) acc[v] = broadcast<Acc>(r.start());
#pragma GCC unroll 1
        for (; n >= kCount; x += kCount, n -= kCount) take<vectors>(r, acc, x);
        take_rest<kCount / 2>(r, acc, x, n);
        join_halves<vectors>(r, acc);
        return acc[0];
    }
};

/// Reduces a row of at least kAccumulators complex numbers by a reducer that treats real and imaginary parts alike. The
/// numbers are added to the accumulators in the same order as in with_accumulators().
template <class R, class T>
RL_INLINE typename R::Acc reduce_parts(const R& r, const Complex<T>* x, int64_t n) {
    using Acc = typename R::Acc;
    using Part = Real<Acc>;
    constexpr int64_t kL = kLanes<Part>, kCount = reducers::kAccumulators<Acc>, kVectors = 2 * kCount / kL;
    const T* part = reinterpret_cast<const T*>(x);
    Vec<Part> sums[kVectors];
    Acc accumulators[kCount];
    for (int64_t k = 0; k < kCount; ++k) accumulators[k] = r.start();
    __builtin_memcpy(sums, accumulators, sizeof sums);
    int64_t i = 0;
    for (; i + kCount <= n; i += kCount)
#pragma GCC unroll 8
        for (int64_t v = 0; v < kVectors; ++v)
            sums[v] = r.step(sums[v], load_as<Part>(part + 2 * i + v * kL));
    __builtin_memcpy(accumulators, sums, sizeof sums);
    reducers::take_rest<kCount / 2>(accumulators, i, n, [&](Acc a, int64_t k) { return r.step(a, x[k]); });
    return reducers::fold<kCount>(accumulators, [&](Acc a, Acc b) { return r.join(a, b); });
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
