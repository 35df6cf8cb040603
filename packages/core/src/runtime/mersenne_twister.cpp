#include "runtime/mersenne_twister.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "rushlight/error.h"

namespace rushlight {

namespace {

// The layout of PyTorch's saved state, little-endian like all machines that we support.
struct SavedTwister {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next;
    uint64_t words[624];
    uint64_t unused;
    double kept_normal;
    // PyTorch writes 0 to this field, and does not read it.
    uint64_t philox_offset;
    int32_t has_normal, padding;
    // PyTorch does not use this field on the CPU.
    float kept_float_normal;
    uint8_t has_float_normal, end[3];
};
static_assert(sizeof(SavedTwister) == MersenneTwister::kStateBytes);

}  // namespace

MersenneTwister::MersenneTwister(uint64_t seed) : seed_(seed) {
    words_[0] = static_cast<uint32_t>(seed);
    for (uint32_t i = 1; i < kWords; ++i)
        words_[i] = 1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
}

void MersenneTwister::keep(TwisterSnapshot* snapshot) {
    if (snapshot && !snapshot->taken) {
        snapshot->taken = true;
        snapshot->left = left_;
        snapshot->next = next_;
        snapshot->kept_normal = kept_normal_;
        snapshot->has_normal = has_normal_;
    }
    snapshot_ = snapshot;
}

void MersenneTwister::restore(const TwisterSnapshot& snapshot) {
    left_ = snapshot.left;
    next_ = snapshot.next;
    kept_normal_ = snapshot.kept_normal;
    has_normal_ = snapshot.has_normal;
    if (snapshot.words) words_ = *snapshot.words;
}

void MersenneTwister::refill() {
    if (snapshot_ && !snapshot_->words) snapshot_->words = std::make_unique<TwisterSnapshot::Words>(words_);
    constexpr int kShift = 397;
    const auto twist = [](uint32_t upper, uint32_t lower) {
        const uint32_t mixed = (upper & 0x80000000U) | (lower & 0x7FFFFFFFU);
        return (mixed >> 1) ^ ((lower & 1) ? 0x9908B0DFU : 0U);
    };
    int i = 0;
    for (; i < kWords - kShift; ++i) words_[i] = words_[i + kShift] ^ twist(words_[i], words_[i + 1]);
    for (; i < kWords - 1; ++i) words_[i] = words_[i + kShift - kWords] ^ twist(words_[i], words_[i + 1]);
    words_[i] = words_[kShift - 1] ^ twist(words_[i], words_[0]);
    left_ = kWords;
    next_ = 0;
}

double MersenneTwister::next_normal() {
    if (has_normal_) {
        has_normal_ = false;
        return kept_normal_;
    }
    constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
    const double u = static_cast<double>(next64() & kMask) * 0x1p-53;
    const double v = static_cast<double>(next64() & kMask) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log1p(-v)), angle = 2 * std::numbers::pi * u;
    kept_normal_ = radius * std::sin(angle);
    has_normal_ = true;
    return radius * std::cos(angle);
}

void MersenneTwister::save(std::span<uint8_t, kStateBytes> bytes, uint64_t offset) const {
    SavedTwister saved{};
    saved.seed = seed_;
    saved.left = left_;
    saved.seeded = 1;
    saved.next = next_;
    for (int i = 0; i < kWords; ++i) saved.words[i] = words_[i];
    saved.kept_normal = has_normal_ ? kept_normal_ : 0;
    saved.has_normal = has_normal_;
    saved.philox_offset = offset;
    std::memcpy(bytes.data(), &saved, sizeof saved);
}

uint64_t MersenneTwister::restore(std::span<const uint8_t, kStateBytes> bytes) {
    SavedTwister saved;
    std::memcpy(&saved, bytes.data(), sizeof saved);
    bool valid = saved.seeded == 1 && saved.left >= 1 && saved.left <= kWords && saved.next <= kWords &&
                 static_cast<uint64_t>(saved.left) + saved.next <= kWords + 1 &&
                 (saved.has_normal == 0 || saved.has_normal == 1);
    for (uint64_t word : saved.words) valid = valid && word >> 32 == 0;
    RL_CHECK(valid, throw_runtime, "set_state(state): the bytes are not a state of PyTorch's CPU generator");
    seed_ = saved.seed;
    left_ = saved.left;
    next_ = static_cast<uint32_t>(saved.next);
    for (int i = 0; i < kWords; ++i) words_[i] = static_cast<uint32_t>(saved.words[i]);
    kept_normal_ = saved.kept_normal;
    has_normal_ = saved.has_normal == 1;
    return saved.philox_offset;
}

}  // namespace rushlight
