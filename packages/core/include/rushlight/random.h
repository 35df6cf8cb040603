// Random generators, which assign the streams that philox.h computes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rushlight/caller_locks.h"
#include "rushlight/device.h"
#include "rushlight/export.h"
#include "rushlight/intrusive.h"
#include "rushlight/philox.h"

namespace rushlight {

class MersenneTwister;

/// The algorithm of a generator.
enum class RandomStream : uint8_t {
    Philox,  ///< Each is a function of the seed, the call and the element.
    Torch,  ///< PyTorch's on the CPU: a Mersenne twister's, drawn one after the other.
};

/// The stream of generators that are made from now on: of RUSHLIGHT_RANDOM ("philox", the default, or "torch") before
/// `set_random_stream` is called. ValueError if that variable has another value.
RL_API RandomStream random_stream();
/// Sets the stream of new generators and of the default generator, which restarts from its initial seed if its stream
/// changes.
RL_API void set_random_stream(RandomStream stream);

/// A seed and the number of streams given out since it was set. Thread-safe without a lock, so also across a
/// fork; the child starts in the parent's state, as a copy.
class RL_API Generator final : public RefCounted {
  public:
    static constexpr uint64_t kDefaultSeed =
        67280421310721;  // what `initial_seed()` returns before `manual_seed`

    static Ref<Generator> make(Device device = {}, uint64_t seed = kDefaultSeed);
    static void destroy(Generator* generator);

    Device device() const { return device_; }

    /// Starts again from `seed`.
    void manual_seed(uint64_t seed);
    /// Starts again from a seed taken from the system's entropy, and returns the seed.
    uint64_t seed();
    uint64_t initial_seed() const;

    RandomStream stream() const { return stream_.load(std::memory_order_acquire); }
    /// Starts again from the initial seed, in another stream. Does nothing if `stream` is this generator's already.
    void set_stream(RandomStream stream);

    /// Returns a Philox stream that is not assigned twice, or with `streams` above one, the first of several
    /// consecutive offsets. With the stream `Torch`, numbers that it does not define are drawn from Philox too: those
    /// of other devices and of distributions that PyTorch does not have.
    PhiloxKey reserve(uint64_t streams = 1);

    /// The twister of the stream `Torch`, while no other thread draws from one.
    class Draw {
      public:
        explicit Draw(Generator& generator) : lock_(twister_mutex()), twister_(*generator.twister_) {}
        MersenneTwister* operator->() const { return &twister_; }
        MersenneTwister& operator*() const { return twister_; }

      private:
        KeptCallerLocks kept_;
        std::lock_guard<std::mutex> lock_;
        MersenneTwister& twister_;
    };

    /// With the stream `Torch`, the state is one that PyTorch's generator accepts; bytes that PyTorch ignores hold the
    /// Philox offset.
    std::vector<uint8_t> get_state() const;
    /// Restores a state that `get_state` returned, here or in PyTorch, and its stream. Raises RuntimeError for other
    /// bytes and leaves the state unchanged.
    void set_state(std::span<const uint8_t> state);

  private:
    using State = unsigned __int128;  // offset in the high half, seed in the low one

    explicit Generator(Device device, uint64_t seed);
    ~Generator();

    // One lock for all twisters, so that a fork needs to hold one only.
    static std::mutex& twister_mutex();

    State load() const;
    State exchange_if(State expected, State desired) const;
    void store(State state);

    Device device_;
    std::atomic<RandomStream> stream_{RandomStream::Philox};
    std::unique_ptr<MersenneTwister> twister_;  // there once the stream has been `Torch`
    alignas(16) mutable State state_;
};

/// The generator that operators use when the caller gives none.
RL_API Generator& default_generator();

}  // namespace rushlight
