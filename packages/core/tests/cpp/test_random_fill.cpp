// sources: src/cpu/random_fill.cpp src/cpu/kernels/random_fill.cpp src/cpu/capability.cpp
// sources: src/runtime/caller_locks.cpp src/runtime/parallel.cpp src/runtime/limits.cpp src/runtime/error.cpp
// options: -DRUSHLIGHT_CPU=avx2 -DRUSHLIGHT_HAVE_AVX2=1

// Ranges of random values have the values that Note [Random values] defines for each position, wherever a range begins.
#include "cpu/random_fill.h"

#include <algorithm>
#include <cmath>

#include "check.h"
#include "rushlight/parallel.h"

using namespace rushlight;
using namespace rushlight::cpu;

namespace {

constexpr PhiloxKey kKey{0x0123456789abcdef, 77};

uint32_t word(int64_t i) { return philox(kKey, static_cast<uint64_t>(i / 4)).word[i % 4]; }
uint64_t wide(int64_t i) { return philox(kKey, static_cast<uint64_t>(i / 2)).wide(static_cast<int>(i % 2)); }

/// Compares ranges with all small start positions and lengths, and some long ranges.
template <class T, class Fill, class Value>
void check_ranges(Fill&& fill, Value&& value) {
    for (int64_t begin : {0, 1, 2, 3, 5, 255, 256, 1000, (1 << 20) + 1}) {
        for (int64_t n : {0, 1, 2, 3, 4, 7, 255, 256, 257, 1025}) {
            std::vector<T> got(static_cast<size_t>(n) + 1, T(99));
            fill(kKey, begin, n, got.data());
            for (int64_t i = 0; i < n; ++i) CHECK_EQUAL(got[static_cast<size_t>(i)], value(begin + i));
            CHECK_EQUAL(got.back(), T(99));  // nothing is written beyond the end
        }
    }
}

}  // namespace

TEST(uniforms) {
    const RandomKernels& kernels = random_kernels();
    check_ranges<float>(kernels.uniform_float, [](int64_t i) { return uniform_float(word(i)); });
    check_ranges<double>(kernels.uniform_double, [](int64_t i) { return uniform_double(wide(i)); });
}

TEST(normals) {
    const RandomKernels& kernels = random_kernels();
    check_ranges<float>(kernels.normal_float, [](int64_t i) {
        auto pair = normal_pair(word(i / 2 * 2), word(i / 2 * 2 + 1));
        return i % 2 ? pair.second : pair.first;
    });
    check_ranges<double>(kernels.normal_double, [](int64_t i) {
        auto pair = normal_pair(wide(i / 2 * 2), wide(i / 2 * 2 + 1));
        return i % 2 ? pair.second : pair.first;
    });
}

TEST(masks) {
    const RandomKernels& kernels = random_kernels();
    // Thresholds of whole bytes, thresholds with ties that further bits decide, and the limits.
    for (uint64_t threshold :
         {uint64_t{0}, uint64_t{1}, uint64_t{0x80000000}, uint64_t{0x80000001}, uint64_t{0x19999999},
          uint64_t{0xFFBE76C8}, uint64_t{0xFFFFFFFF}, uint64_t{1} << 32}) {
        const auto fill = [&](PhiloxKey key, int64_t begin, int64_t n, uint8_t* out) {
            kernels.mask(key, begin, n, threshold, out);
        };
        check_ranges<uint8_t>(
            fill, [&](int64_t i) { return mask_keeps(kKey, static_cast<uint64_t>(i), threshold); });
    }
    CHECK_EQUAL(mask_threshold(1), uint64_t{1} << 32);
    CHECK_EQUAL(mask_threshold(0.5), uint64_t{1} << 31);
}

// A probability that is rounded to 8 or 16 bits would keep too many or too few ties. For 0.9, ties are kept with a
// probability of 0.4.
TEST(ties_of_masks_are_decided_by_further_bits) {
    for (double p : {0.1, 0.001, 0.999, 0.25 + 0x1p-10}) {
        const uint64_t threshold = mask_threshold(1 - p);
        CHECK(std::fabs(static_cast<double>(threshold) * 0x1p-32 - (1 - p)) <= 0x1p-33);
        constexpr int64_t kElements = 1 << 21;
        int64_t ties = 0, kept = 0, kept_in_all = 0;
        for (uint64_t i = 0; i < kElements; ++i) {
            const uint32_t high = philox(kKey, i / 16).word[i % 16 / 4] >> 8 * (i % 4) & 0xFF;
            const bool keeps = mask_keeps(kKey, i, threshold);
            kept_in_all += keeps;
            if (high != threshold >> 24) continue;
            ++ties;
            kept += keeps;
        }
        // Checks that a count is within five standard deviations.
        const auto is_near = [](int64_t count, int64_t n, double probability) {
            const auto of = static_cast<double>(n);
            return std::fabs(static_cast<double>(count) - of * probability) <
                   5 * std::sqrt(of * probability * (1 - probability));
        };
        CHECK(is_near(ties, kElements, 0x1p-8));
        CHECK(is_near(kept, ties, static_cast<double>(threshold & 0xFFFFFF) * 0x1p-24));
        CHECK(is_near(kept_in_all, kElements, 1 - p));
    }
}

// An element is kept if a number of 32 bits is below the threshold. Each byte of the number is uniform, so the probability
// is exact to 2^-32.
TEST(an_element_of_a_mask_draws_32_bits) {
    constexpr int kElements = 1 << 16;
    std::vector<int> found[4];
    for (std::vector<int>& counts : found) counts.assign(256, 0);
    for (uint64_t i = 0; i < kElements; ++i) {
        uint64_t number = 0;  // the largest threshold at which the element is not kept
        for (int bit = 31; bit >= 0; --bit) {
            const uint64_t next = number | uint64_t{1} << bit;
            if (!mask_keeps(kKey, i, next)) number = next;
        }
        CHECK(!mask_keeps(kKey, i, number) && mask_keeps(kKey, i, number + 1));
        for (size_t byte = 0; byte < 4; ++byte) ++found[byte][number >> 8 * byte & 0xFF];
    }
    for (const std::vector<int>& counts : found) {
        double statistic = 0;  // chi-squared with 255 degrees of freedom
        for (int count : counts) statistic += (count - 256.0) * (count - 256.0) / 256.0;
        CHECK(statistic > 150 && statistic < 380);
    }
}

TEST(integers) {
    const RandomKernels& kernels = random_kernels();
    for (uint64_t range : {1ull, 2ull, 10ull, 0xFFFFFFFFull, 0x100000000ull, 0x8000000000000001ull, 0ull}) {
        for (int64_t low : {int64_t{0}, int64_t{-5}, INT64_MIN}) {
            check_ranges<int64_t>(
                [&](PhiloxKey key, int64_t begin, int64_t n, int64_t* out) {
                    kernels.integers(key, begin, n, low, range, out);
                },
                [&](int64_t i) {
                    return static_cast<int64_t>(static_cast<uint64_t>(low) + uniform_below(wide(i), range));
                });
        }
    }
}

TEST(coins) {
    const RandomKernels& kernels = random_kernels();
    for (float p : {0.0f, 0.25f, 1.0f}) {
        check_ranges<uint8_t>([&](PhiloxKey key, int64_t begin, int64_t n,
                                  uint8_t* out) { kernels.bernoulli(key, begin, n, p, out); },
                              [&](int64_t i) { return static_cast<uint8_t>(uniform_float(word(i)) < p); });
    }
}

TEST(the_number_of_threads_changes_nothing) {
    constexpr size_t kMany = 200'001;
    std::vector<float> serial(kMany), threaded(kMany);
    int former = num_threads();
    set_num_threads(1);
    fill_normal(kKey, serial.data(), kMany);
    set_num_threads(3);
    fill_normal(kKey, threaded.data(), kMany);
    set_num_threads(former);
    CHECK(serial == threaded);
    std::vector<uint8_t> coins(kMany);
    fill_bernoulli(kKey, 0.5f, coins.data(), kMany);
    CHECK(std::abs(std::count(coins.begin(), coins.end(), 1) - 100'000) < 1200);
}
