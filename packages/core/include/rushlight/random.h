// Random generators: who hands out the streams that philox.h computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rushlight/device.h"
#include "rushlight/export.h"
#include "rushlight/intrusive.h"
#include "rushlight/philox.h"

namespace rushlight {

/// A seed and the number of streams given out since it was set. Thread-safe without a lock, so also across a
/// fork; the child starts in the parent's state, as a copy.
class RL_API Generator final : public RefCounted {
  public:
    static constexpr uint64_t kDefaultSeed =
        67280421310721;  // what `initial_seed()` says before `manual_seed`

    static Ref<Generator> make(Device device = {}, uint64_t seed = kDefaultSeed);
    static void destroy(Generator* generator);

    Device device() const { return device_; }

    /// Starts again from `seed`.
    void manual_seed(uint64_t seed);
    /// Starts again from a seed of the system's entropy, and returns it.
    uint64_t seed();
    uint64_t initial_seed() const;

    /// A stream that nobody else has; with `streams` above one, so are the next offsets.
    PhiloxKey reserve(uint64_t streams = 1);

    std::vector<uint8_t> get_state() const;
    /// Takes what `get_state` gave. RuntimeError for anything else; the state stays as it was.
    void set_state(std::span<const uint8_t> state);

  private:
    using State = unsigned __int128;  // offset in the high half, seed in the low one

    explicit Generator(Device device, uint64_t seed) : device_(device), state_(seed) {}
    ~Generator() = default;

    State load() const;
    State exchange_if(State expected, State desired) const;
    void store(State state);

    Device device_;
    alignas(16) mutable State state_;
};

/// The generator that operators use when the caller gives none.
RL_API Generator& default_generator();

}  // namespace rushlight
