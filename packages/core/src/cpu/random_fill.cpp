#include "cpu/random_fill.h"

#include "rushlight/parallel.h"

namespace rushlight::cpu {

namespace {
constexpr int64_t kGrain = 1 << 15;  // about 20 microseconds of work
}

void fill_uniform(PhiloxKey key, float* out, int64_t n) {
    parallel_for(0, n, kGrain,
                 [=](int64_t lo, int64_t hi) { random_kernels().uniform_float(key, lo, hi - lo, out + lo); });
}

void fill_uniform(PhiloxKey key, double* out, int64_t n) {
    parallel_for(0, n, kGrain, [=](int64_t lo, int64_t hi) {
        random_kernels().uniform_double(key, lo, hi - lo, out + lo);
    });
}

void fill_normal(PhiloxKey key, float* out, int64_t n) {
    parallel_for(0, n, kGrain,
                 [=](int64_t lo, int64_t hi) { random_kernels().normal_float(key, lo, hi - lo, out + lo); });
}

void fill_normal(PhiloxKey key, double* out, int64_t n) {
    parallel_for(0, n, kGrain,
                 [=](int64_t lo, int64_t hi) { random_kernels().normal_double(key, lo, hi - lo, out + lo); });
}

void fill_integers(PhiloxKey key, int64_t low, uint64_t range, int64_t* out, int64_t n) {
    parallel_for(0, n, kGrain, [=](int64_t lo, int64_t hi) {
        random_kernels().integers(key, lo, hi - lo, low, range, out + lo);
    });
}

void fill_bernoulli(PhiloxKey key, float p, uint8_t* out, int64_t n) {
    parallel_for(0, n, kGrain,
                 [=](int64_t lo, int64_t hi) { random_kernels().bernoulli(key, lo, hi - lo, p, out + lo); });
}

void fill_mask(PhiloxKey key, uint64_t threshold, uint8_t* out, int64_t n) {
    parallel_for(0, n, kGrain, [=](int64_t lo, int64_t hi) {
        random_kernels().mask(key, lo, hi - lo, threshold, out + lo);
    });
}

}  // namespace rushlight::cpu
