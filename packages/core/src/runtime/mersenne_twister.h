// The random number generator that PyTorch uses on the CPU: MT19937, of M. Matsumoto and T. Nishimura, "Mersenne
// twister: a 623-dimensionally equidistributed uniform pseudo-random number generator", 1998.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rushlight/random.h"

namespace rushlight {

/// A sequence of random words. Not thread-safe: Generator::Draw holds the lock.
class MersenneTwister {
  public:
    /// The size of PyTorch's saved state of a CPU generator.
    static constexpr size_t kStateBytes = 5056;

    /// The lower 32 bits of `seed` determine the sequence, as in PyTorch.
    explicit MersenneTwister(uint64_t seed);

    uint64_t initial_seed() const { return seed_; }

    uint32_t next() {
        if (--left_ == 0) refill();
        uint32_t y = words_[next_++];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C5680U;
        y ^= (y << 15) & 0xEFC60000U;
        return y ^ (y >> 18);
    }
    /// Draws a number of 64 bits from two words. The first word is the upper half.
    uint64_t next64() {
        const uint64_t upper = next();
        return upper << 32 | next();
    }
    /// Returns a standard normal number. Normal numbers are computed in pairs (G. Box and M. Muller, "A note on the
    /// generation of random normal deviates", 1958). The second number of a pair is stored for the next call.
    double next_normal();

    /// Writes the state as PyTorch's `get_state` does. `offset` is the offset of the generator's Philox stream. It is
    /// written to a field that PyTorch does not read.
    void save(std::span<uint8_t, kStateBytes> bytes, uint64_t offset) const;
    /// Restores a state that `save` or PyTorch wrote, and returns the offset. For other bytes, raises RuntimeError and
    /// leaves the state unchanged.
    uint64_t restore(std::span<const uint8_t, kStateBytes> bytes);

    /// Takes the snapshot if it has not been taken. Copies the words to it before they are first replaced, until the next
    /// call; null ends this.
    void keep(TwisterSnapshot* snapshot);
    /// Returns to the state of a snapshot that has been kept during all draws since then.
    void restore(const TwisterSnapshot& snapshot);

  private:
    static constexpr int kWords = TwisterSnapshot::kWords;

    void refill();

    uint64_t seed_;
    TwisterSnapshot::Words words_;
    // One more than the number of words that are left before the next refill.
    int left_ = 1;
    uint32_t next_ = 0;
    double kept_normal_ = 0;
    bool has_normal_ = false;
    TwisterSnapshot* snapshot_ = nullptr;
};

}  // namespace rushlight
