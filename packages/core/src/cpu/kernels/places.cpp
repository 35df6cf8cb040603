#include "cpu/places.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

bool within(const int64_t* index, int64_t n, int64_t size) {
    // Negative where one of both is: vector code without comparisons.
    uint64_t bad = 0;
    const auto last = static_cast<uint64_t>(size) - 1;
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(index[i]);
        bad |= at | (last - at);
    }
    return !(bad >> 63);
}

template <class T>
void read_elements(T* out, const T* in, const int64_t* index, int64_t n, int64_t stride, int64_t step) {
    if (step == 0 && stride == 1) {
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) out[j] = in[index[j]];
        return;
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = in[j * step + index[j] * stride];
}

struct Pair {
    uint64_t a, b;
};

template <class F>
auto with_size(size_t itemsize, F f) {
    switch (itemsize) {
        case 1: return f(uint8_t());
        case 2: return f(uint16_t());
        case 4: return f(uint32_t());
        case 8: return f(uint64_t());
        default: return f(Pair());
    }
}

void read(void* out, const void* in, size_t itemsize, const int64_t* index, int64_t n, int64_t stride,
          int64_t step) {
    with_size(itemsize, [&]<class T>(T) {
        read_elements(static_cast<T*>(out), static_cast<const T*>(in), index, n, stride, step);
    });
}

template <class T>
void add(T* to, const T* from, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class T>
void backwards(char* const* data, const int64_t*, int64_t n, const Scalar*) {
    T* out = reinterpret_cast<T*>(data[0]);
    const T* in = reinterpret_cast<const T*>(data[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = in[-i];
}
LoopFn copy_backwards(size_t itemsize) {
    return with_size(itemsize, []<class T>(T) -> LoopFn { return backwards<T>; });
}

}  // namespace

const PlaceKernels place_kernels_table = {within, read, add<float>, add<double>, copy_backwards};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
