#include "cpu/scatter_kernels.h"

#include "cpu/kernels/simd.h"
#include "ops/functors/scatter.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

using namespace functors;

// Combines whole rows of `from` with whole rows of `to`.
template <class T, ScatterReduction how>
void reduce_slices(const ScatterPlan& l, T* to, const T* from, bool include_self, const int64_t* counts,
                   int64_t begin, int64_t end) {
    using C = Computed<T>;
    const int64_t across = l.across(), columns = l.width();
    for (int64_t block = begin; block < end; ++block) {
        const int64_t o = block / across, first = block % across * columns;
        const int64_t width = l.inner - first < columns ? l.inner - first : columns;
        const auto row = [&](int64_t at) { return to + (o * l.size + at) * l.inner + first; };
        for (int64_t i = 0; !include_self && i < l.n; ++i) {
            T* position = row(l.index[i]);
            for (int64_t j = 0; j < width; ++j) position[j] = static_cast<T>(neutral<how, C>());
        }
        for (int64_t i = 0; i < l.n; ++i) {
            T* __restrict position = row(l.index[i]);
            const T* __restrict part = from + (o * l.n + i) * l.inner + first;
#pragma omp simd
            for (int64_t j = 0; j < width; ++j)
                position[j] =
                    static_cast<T>(combine<how, C>(static_cast<C>(position[j]), static_cast<C>(part[j])));
        }
        for (int64_t at = 0; how == ScatterReduction::Mean && at < l.size; ++at) {
            if (counts[at] < 2) continue;
            T* position = row(at);
            for (int64_t j = 0; j < width; ++j)
                position[j] = static_cast<T>(mean_of<C>(static_cast<C>(position[j]), counts[at]));
        }
    }
}

template <class T, ScatterReduction how>
void reduce_rows(const ScatterPlan& l, T* to, const T* from, bool include_self, int64_t* counts,
                 int64_t begin, int64_t end) {
    using C = Computed<T>;
    constexpr int64_t kMost = ScatterPlan::kRows;
    int64_t base[kMost];
    const int64_t across = l.across();
    for (int64_t block = begin; block < end; ++block) {
        const int64_t o = block / across, first = block % across * kMost;
        const int64_t width = l.inner - first < kMost ? l.inner - first : kMost;
        for (int64_t j = 0; j < width; ++j) base[j] = l.others.offset(o * l.inner + first + j);
        const auto each = [&](auto body) {
            if (l.inner == 1) {  // rows of adjacent elements
                T* const target = to + base[0];
                for (int64_t i = 0, at = o * l.n; i < l.n; ++i, ++at)
                    body(target[l.index[at] * l.stride], at, l.index[at]);
                return;
            }
            for (int64_t i = 0; i < l.n; ++i)
                for (int64_t j = 0; j < width; ++j) {
                    const int64_t at = (o * l.n + i) * l.inner + first + j;
                    body(to[base[j] + l.index[at] * l.stride], at, l.index[at] * width + j);
                }
        };
        if (!include_self)
            each([](T& position, int64_t, int64_t) { position = static_cast<T>(neutral<how, C>()); });
        each([&](T& position, int64_t at, int64_t) {
            position = static_cast<T>(combine<how, C>(static_cast<C>(position), static_cast<C>(from[at])));
        });
        if constexpr (how == ScatterReduction::Mean) {
            for (int64_t k = 0; k < l.size * width; ++k) counts[k] = include_self;
            each([&](T&, int64_t, int64_t k) { ++counts[k]; });
            each([&](T& position, int64_t, int64_t k) {
                if (counts[k]) position = static_cast<T>(mean_of<C>(static_cast<C>(position), counts[k]));
                counts[k] = 0;
            });
        }
    }
}

template <class T, ScatterReduction how>
void reduce(const ScatterPlan& l, void* to, const void* from, bool include_self, int64_t* counts,
            int64_t begin, int64_t end) {
    T* out = static_cast<T*>(to);
    const T* in = static_cast<const T*>(from);
    if (l.slices) reduce_slices<T, how>(l, out, in, include_self, counts, begin, end);
    else reduce_rows<T, how>(l, out, in, include_self, counts, begin, end);
}

template <class T>
constexpr void add(ScatterKernels& k, DType dtype) {
    const auto at = [&](ScatterReduction how) -> ScatterKernels::Reduce& {
        return k.reduce[static_cast<int>(how)][static_cast<int>(dtype)];
    };
    at(ScatterReduction::Sum) = reduce<T, ScatterReduction::Sum>;
    at(ScatterReduction::Prod) = reduce<T, ScatterReduction::Prod>;
    at(ScatterReduction::Mean) = reduce<T, ScatterReduction::Mean>;
    if constexpr (!kIsComplex<T>) {
        at(ScatterReduction::Amax) = reduce<T, ScatterReduction::Amax>;
        at(ScatterReduction::Amin) = reduce<T, ScatterReduction::Amin>;
    }
}

constexpr ScatterKernels make() {
    ScatterKernels k{};
    const auto add_type = [&]<class T>(DType dtype) { add<T>(k, dtype); };
    each_type(RealNumbers{}, add_type);
    each_type(ComplexOnly{}, add_type);
    // For bools, the sum is `or` and the product is `and`.
    const auto of_bytes = [&](ScatterReduction how) {
        return k.reduce[static_cast<int>(how)][static_cast<int>(DType::UInt8)];
    };
    const int truth = static_cast<int>(DType::Bool);
    k.reduce[static_cast<int>(ScatterReduction::Sum)][truth] = of_bytes(ScatterReduction::Amax);
    k.reduce[static_cast<int>(ScatterReduction::Prod)][truth] = of_bytes(ScatterReduction::Amin);
    k.reduce[static_cast<int>(ScatterReduction::Amax)][truth] = of_bytes(ScatterReduction::Amax);
    k.reduce[static_cast<int>(ScatterReduction::Amin)][truth] = of_bytes(ScatterReduction::Amin);
    return k;
}

}  // namespace

const ScatterKernels scatter_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
