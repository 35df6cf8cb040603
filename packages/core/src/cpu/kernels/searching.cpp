#include "cpu/searching_kernels.h"

#include <type_traits>

#include "cpu/kernels/simd.h"
#include "ops/element_types.h"
#include "ops/functors/searching.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

using namespace functors;

// Runs several binary searches at a time, whose memory accesses overlap. Calls put(i, position) with each result.
template <class C, class Value, class Element, class Put>
RL_INLINE void search(int64_t n, int64_t count, bool right, Value value, Element element, Put put) {
    constexpr int kTogether = 8;
    int64_t i = 0;
    if (count > 0) {
        for (; i + kTogether <= n; i += kTogether) {
            C v[kTogether];
            int64_t begin[kTogether];
            for (int j = 0; j < kTogether; ++j) {
                v[j] = value(i + j);
                begin[j] = 0;
            }
            int64_t left = count;
            while (left > 1) {
                const int64_t half = left / 2;
                for (int j = 0; j < kTogether; ++j) {
                    const C e = element(begin[j] + half - 1);
                    begin[j] += goes_behind(v[j], e, right) ? half : 0;
                }
                left -= half;
            }
            for (int j = 0; j < kTogether; ++j) {
                const C e = element(begin[j]);
                put(i + j, begin[j] + static_cast<int64_t>(goes_behind(v[j], e, right)));
            }
        }
    }
    for (; i < n; ++i) {
        const C v = value(i);
        put(i, first_position(count, [&](int64_t k) { return goes_behind(v, element(k), right); }));
    }
}

template <class T>
void position(int64_t* positions, const void* values, int64_t n, const void* sorted, const int64_t* order,
              int64_t count, bool right) {
    using C = Computed<T>;
    const T *x = static_cast<const T*>(values), *s = static_cast<const T*>(sorted);
    const auto value = [=](int64_t i) { return static_cast<C>(x[i]); };
    const auto put = [=](int64_t i, int64_t at) { positions[i] = at; };
    if (order) search<C>(n, count, right, value, [=](int64_t k) { return static_cast<C>(s[order[k]]); }, put);
    else if (right) search<C>(n, count, true, value, [=](int64_t k) { return static_cast<C>(s[k]); }, put);
    else search<C>(n, count, false, value, [=](int64_t k) { return static_cast<C>(s[k]); }, put);
}

template <class T>
void is_in(bool* found, const void* values, int64_t n, const void* sorted, int64_t count, bool invert) {
    using C = Computed<T>;
    const T *x = static_cast<const T*>(values), *s = static_cast<const T*>(sorted);
    while (count > 0 && static_cast<C>(s[count - 1]) != static_cast<C>(s[count - 1])) --count;  // NaN is last
    search<C>(
        n, count, false, [=](int64_t i) { return static_cast<C>(x[i]); },
        [=](int64_t k) { return static_cast<C>(s[k]); },
        [=](int64_t i, int64_t at) {
            found[i] = (at < count && static_cast<C>(s[at]) == static_cast<C>(x[i])) != invert;
        });
}

template <class T>
int64_t group(int64_t* starts, int64_t* groups, const void* sorted, int64_t n) {
    using C = Computed<T>;
    const T* x = static_cast<const T*>(sorted);
    int64_t size = 0;
    for (int64_t i = 0; i < n; ++i) {
        // To avoid a branch, the position is always written, but it is counted only if it begins a group.
        starts[size] = i;
        size += i == 0 || !(static_cast<C>(x[i]) == static_cast<C>(x[i - 1]));
        if (groups) groups[i] = size - 1;
    }
    return size;
}

template <class T>
int compare(const void* first, const void* second, int64_t width, bool* equal) {
    using C = Computed<T>;
    const T *a = static_cast<const T*>(first), *b = static_cast<const T*>(second);
    *equal = true;
    for (int64_t i = 0; i < width; ++i) {
        const C p = a[i], q = b[i];
        if (p == q) continue;
        *equal = false;
        if (p < q || (p == p && q != q)) return -1;
        if (q < p || (q == q && p != p)) return 1;
    }
    return 0;
}

template <class T>
constexpr void add(SearchingKernels& k, DType dtype) {
    const int d = static_cast<int>(dtype);
    k.position[d] = position<T>;
    k.is_in[d] = is_in<T>;
    k.group[d] = group<T>;
    k.compare[d] = compare<T>;
}

constexpr SearchingKernels make() {
    SearchingKernels k{};
    const auto add_type = [&]<class T>(DType dtype) { add<T>(k, dtype); };
    add<uint8_t>(k, DType::Bool);
    each_type(RealNumbers{}, add_type);
    return k;
}

}  // namespace

const SearchingKernels searching_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
