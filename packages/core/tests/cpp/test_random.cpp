// sources: src/runtime/caller_locks.cpp src/runtime/random.cpp src/runtime/mersenne_twister.cpp src/runtime/error.cpp

// Random numbers: known values, distributions, and generators, which assign offsets to calls.
#include "rushlight/random.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <thread>
#include <utility>

#include "check.h"

using namespace rushlight;

TEST(known_answers_of_the_paper) {
    // The test vectors that the authors of Philox publish with Random123 (philox4x32, 10 rounds).
    struct Answer {
        PhiloxKey key;
        uint64_t index;
        uint32_t word[4];
    };
    const Answer answers[] = {
        {{0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0ull, ~0ull}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x299f31d0a4093822, 0x0370734413198a2e},
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (const Answer& answer : answers) {
        PhiloxBlock block = philox(answer.key, answer.index);
        for (int i = 0; i < 4; ++i) CHECK_EQUAL(block.word[i], answer.word[i]);
    }
    PhiloxBlock block = philox({0, 0}, 0);
    CHECK_EQUAL(block.wide(0), 0xe169c58d6627e8d5u);
    CHECK_EQUAL(block.wide(1), 0x9b00dbd8bc57ac4cu);
}

TEST(uniforms_fill_their_range) {
    CHECK_EQUAL(uniform_float(0), 0.0f);
    CHECK_EQUAL(uniform_float(~0u), 1.0f - 0x1p-24f);
    CHECK_EQUAL(uniform_double(0), 0.0);
    CHECK_EQUAL(uniform_double(~0ull), 1.0 - 0x1p-53);
    CHECK_EQUAL(uniform_below(~0ull, 10), 9u);
    CHECK_EQUAL(uniform_below(0, 10), 0u);
    CHECK_EQUAL(uniform_below(12345, 0), 12345u);
    constexpr int kDraws = 200'000;
    double sum = 0, squares = 0;
    int counts[7] = {};
    for (uint64_t i = 0; i < kDraws / 4; ++i) {
        PhiloxBlock block = philox({42, 0}, i);
        for (uint32_t word : block.word) {
            double u = uniform_float(word);
            sum += u;
            squares += u * u;
        }
        ++counts[uniform_below(block.wide(0), 7)];
        ++counts[uniform_below(block.wide(1), 7)];
    }
    // The bound is five standard errors.
    CHECK(std::abs(sum / kDraws - 0.5) < 5 * std::sqrt(1 / 12.0 / kDraws));
    CHECK(std::abs(squares / kDraws - 1 / 3.0) < 5 * std::sqrt(4 / 45.0 / kDraws));
    for (int count : counts) CHECK(std::abs(count - kDraws / 14.0) < 5 * std::sqrt(kDraws / 14.0));
}

TEST(normals_are_normal) {
    // The Kolmogorov-Smirnov distance between the empirical and the normal distribution, in both precisions.
    constexpr int kDraws = 200'000;
    auto distance = [](std::vector<double> values) {
        std::sort(values.begin(), values.end());
        double worst = 0, n = static_cast<double>(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            double expected = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
            worst = std::max({worst, std::abs(expected - static_cast<double>(i) / n),
                              std::abs(expected - static_cast<double>(i + 1) / n)});
        }
        return worst * std::sqrt(n);
    };
    std::vector<double> single, twice;
    double product = 0;
    for (uint64_t i = 0; i < kDraws / 2; ++i) {
        PhiloxBlock block = philox({7, 3}, i);
        auto a = normal_pair(block.word[0], block.word[1]);
        auto b = normal_pair(block.wide(0), block.wide(1));
        single.insert(single.end(), {a.first, a.second});
        twice.insert(twice.end(), {b.first, b.second});
        product += static_cast<double>(a.first) * a.second;
    }
    CHECK(distance(single) <
          1.95);  // only one of a thousand samples exceeds the bound, and this sample is fixed
    CHECK(distance(twice) < 1.95);
    CHECK(std::abs(product / (kDraws / 2)) < 5 / std::sqrt(kDraws / 2.0));
}

namespace {

/// Computes the largest error of normal_pair in ulp, compared with a wider type, and a hash of all bits.
template <class T, class Wide, class Bits>
std::pair<double, uint64_t> measure_normals(Bits (*draw)(const PhiloxBlock&, int), Wide (*uniform)(Bits),
                                            Wide (*half_turns)(Bits)) {
    double worst = 0;
    uint64_t hash = 14695981039346656037u;
    for (uint64_t i = 0; i < 300'000; ++i) {
        PhiloxBlock block = philox({1, 2}, i);
        Bits a = draw(block, 0), b = draw(block, 1);
        NormalPair<T> pair = normal_pair(a, b);
        // The angle is measured from the nearest axis, because the wider type's pi is not precise enough near other axes.
        Wide turns = half_turns(b), quarter = std::floor(2 * turns + Wide(0.5));
        Wide radius = std::sqrt(-2 * std::log(uniform(a)));
        Wide angle = std::numbers::pi_v<Wide> * (turns - quarter / 2);
        Wide x = std::cos(angle), y = std::sin(angle);
        for (int k = static_cast<int>(quarter); k > 0; --k) x = std::exchange(y, x) * -1;
        const T got[2] = {pair.first, pair.second};
        const Wide wanted[2] = {radius * x, radius * y};
        for (int k = 0; k < 2; ++k) {
            T nearest = static_cast<T>(std::abs(wanted[k]));
            T ulp = std::nextafter(nearest, std::numeric_limits<T>::infinity()) - nearest;
            worst = std::max(worst, static_cast<double>(std::abs(got[k] - wanted[k]) / ulp));
            Bits bits;
            std::memcpy(&bits, &got[k], sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
        }
    }
    return {worst, hash};
}

}  // namespace

// Every device and version must produce the hashed bits, because other bits would change the results of users.

TEST(normals_of_float32_are_accurate_and_pinned) {
    auto [worst, hash] = measure_normals<float, double, uint32_t>(
        [](const PhiloxBlock& block, int i) { return block.word[i]; },
        [](uint32_t a) { return double{static_cast<float>(static_cast<float>(a) * 0x1p-32 + 0x1p-33)}; },
        [](uint32_t b) { return (b >> 8) * 0x1p-23; });
    CHECK(worst < 4);
    CHECK_EQUAL(hash, 10708451701943564610u);
    auto edge = normal_pair(uint32_t{0}, uint32_t{0});
    CHECK(edge.first > 6.6f && edge.first < 6.8f && edge.second == 0.0f);
    CHECK_EQUAL(normal_pair(~0u, 0u).first, 0.0f);
}

TEST(normals_of_float64_are_accurate_and_pinned) {
    auto [worst, hash] = measure_normals<double, long double, uint64_t>(
        [](const PhiloxBlock& block, int i) { return block.wide(i); },
        [](uint64_t a) {
            return static_cast<long double>(static_cast<double>((a >> 11) * 0x1p-53L + 0x1p-54L));
        },
        [](uint64_t b) { return (b >> 11) * 0x1p-52L; });
    CHECK(worst < 4);
    CHECK_EQUAL(hash, 8251167940584247165u);
    auto edge = normal_pair(uint64_t{0}, uint64_t{0});
    CHECK(edge.first > 8.6 && edge.first < 8.7 && edge.second == 0.0);
    CHECK_EQUAL(normal_pair(~uint64_t{0}, uint64_t{0}).first, 0.0);
}

TEST(streams_are_counted) {
    auto generator = Generator::make();
    CHECK_EQUAL(generator->initial_seed(), Generator::kDefaultSeed);
    PhiloxKey a = generator->reserve(), b = generator->reserve(3), c = generator->reserve();
    CHECK(a.seed == Generator::kDefaultSeed && a.offset == 0 && b.offset == 1 && c.offset == 4);
    generator->manual_seed(5);
    a = generator->reserve();
    CHECK(a.seed == 5 && a.offset == 0);
    CHECK_EQUAL(generator->initial_seed(), 5u);
    generator->manual_seed(0);
    CHECK_EQUAL(generator->reserve().offset, 0u);
    uint64_t fresh = generator->seed();
    CHECK_EQUAL(generator->initial_seed(), fresh);
    CHECK(fresh != generator->seed());
    CHECK(&default_generator() == &default_generator());
}

TEST(states_are_restored) {
    auto generator = Generator::make();
    generator->manual_seed(0xFEDCBA9876543210);
    generator->reserve(1000);
    auto state = generator->get_state();
    PhiloxKey next = generator->reserve();
    auto other = Generator::make();
    other->set_state(state);
    PhiloxKey same = other->reserve();
    CHECK(same.seed == next.seed && same.offset == next.offset && same.offset == 1000);

    auto before = other->get_state();
    auto bad = state;
    bad[0] ^= 1;
    CHECK_RAISES(Runtime, "not a state of this generator", other->set_state(bad));
    bad.pop_back();
    CHECK_RAISES(Runtime, "got 23 bytes, but a state from get_state() has 24", other->set_state(bad));
    CHECK_RAISES(Runtime, "got 0 bytes", other->set_state({}));
    CHECK(other->get_state() == before);
}

TEST(threads_never_get_the_same_stream) {
    auto generator = Generator::make();
    std::vector<std::vector<uint64_t>> offsets(4);
    std::vector<std::thread> threads;
    for (auto& mine : offsets) {
        threads.emplace_back([&generator, &mine] {
            for (int i = 0; i < 5000; ++i) mine.push_back(generator->reserve(2).offset);
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<uint64_t> all;
    for (auto& mine : offsets) all.insert(mine.begin(), mine.end());
    CHECK_EQUAL(all.size(), 20'000u);
    CHECK_EQUAL(*all.rbegin(), 39'998u);
}

TEST(seeding_never_mixes_two_states) {
    // Seed s is always combined with offsets below 1000. No reader may receive s with the offset of another seed.
    auto generator = Generator::make();
    std::atomic<bool> stop{false};
    std::thread seeder([&] {
        for (uint64_t s = 1; s <= 3000; ++s) generator->manual_seed(s);
        stop = true;
    });
    uint64_t last_seed = 0, last_offset = 0;
    while (!stop) {
        PhiloxKey key = generator->reserve();
        CHECK(key.seed != last_seed || key.offset == last_offset + 1 || last_seed == 0);
        CHECK(key.seed == last_seed || key.offset == 0 || last_seed == 0);
        last_seed = key.seed;
        last_offset = key.offset;
    }
    seeder.join();
}

TEST(a_child_starts_from_its_parents_state) {
    auto generator = Generator::make();
    generator->manual_seed(9);
    generator->reserve(5);
    pid_t child = fork();
    if (child == 0) {
        PhiloxKey key = generator->reserve();
        _exit(key.seed == 9 && key.offset == 5 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(generator->reserve().offset, 5u);  // the copies are independent
}
