// Random generators. Each call of an operator reserves a stream of random numbers, which philox.h computes.
#pragma once

#include <array>
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
    Philox,  ///< Each number is a function of the seed, the call and the element.
    Torch,  ///< PyTorch's stream on the CPU: numbers drawn in order from a Mersenne twister.
};

/// The algorithm of new generators. Before `set_random_stream` is called, it is read from the environment variable
/// RUSHLIGHT_RANDOM ("philox", the default, or "torch"). Raises ValueError if that variable has another value.
RL_API RandomStream random_stream();
/// Sets the algorithm of new generators and of the default generator, which restarts from its initial seed if its
/// algorithm changes.
RL_API void set_random_stream(RandomStream stream);

/// A state of a twister to return to. The words are copied only when they are replaced, after at most 624 draws.
struct TwisterSnapshot {
    static constexpr int kWords = 624;
    using Words = std::array<uint32_t, kWords>;

    bool taken = false;
    bool has_normal;
    int left;
    uint32_t next;
    double kept_normal;
    std::unique_ptr<Words> words;
};

namespace detail {
/// If not null, this function is called before the default generator changes from the state `now` to the state `next`, or
/// to another sequence of random numbers if `next` is null. It may raise an error that refuses the change. `what` is the
/// name of the function that changes the state.
extern RL_API std::atomic<void (*)(const char* what, PhiloxKey now, const PhiloxKey* next)> reseeding_check;
}  // namespace detail

/// A seed and the number of streams reserved since the seed was set. A generator is thread-safe without a lock, and
/// therefore also safe across a fork: the child process starts with a copy of the parent's state.
class RL_API Generator final : public RefCounted {
  public:
    /// The result of `initial_seed()` before `manual_seed` is called.
    static constexpr uint64_t kDefaultSeed = 67280421310721;

    static Ref<Generator> make(Device device = {}, uint64_t seed = kDefaultSeed);
    static void destroy(Generator* generator);

    Device device() const { return device_; }

    /// Starts again from `seed`.
    void manual_seed(uint64_t seed);
    /// Starts again from a seed that is drawn from the system's source of entropy, and returns the seed.
    uint64_t seed();
    uint64_t initial_seed() const;

    RandomStream stream() const { return stream_.load(std::memory_order_acquire); }
    /// Starts again from the initial seed with another algorithm. Does nothing if the generator uses that algorithm
    /// already.
    void set_stream(RandomStream stream);

    /// Reserves a Philox stream for a single use and returns its key. If `streams` is greater than one, reserves that
    /// many consecutive offsets and returns the key of the first offset. A generator with the stream `Torch` uses
    /// Philox, too, for numbers that PyTorch's CPU generator does not define: for other devices, and for distributions
    /// that PyTorch does not have.
    PhiloxKey reserve(uint64_t streams = 1);

    /// Gives access to the twister of a generator with the stream `Torch`. No other thread can draw from a twister
    /// while the object exists.
    class RL_API Draw {
      public:
        explicit Draw(Generator& generator);
        ~Draw();
        MersenneTwister* operator->() const { return &twister_; }
        MersenneTwister& operator*() const { return twister_; }

      private:
        KeptCallerLocks kept_;
        std::lock_guard<std::mutex> lock_;
        MersenneTwister& twister_;
    };

    /// With the stream `Torch`, the state is a valid state of PyTorch's generator. The Philox offset is stored in bytes
    /// of this state that PyTorch ignores.
    std::vector<uint8_t> get_state() const;
    /// Restores a state, and the stream of that state. The state may come from `get_state` of rushlight or of PyTorch.
    /// For other bytes, raises RuntimeError and leaves the generator unchanged.
    void set_state(std::span<const uint8_t> state);

  private:
    friend class DrawScope;

    // The high half is the offset, the low half is the seed.
    using State = unsigned __int128;

    explicit Generator(Device device, uint64_t seed);
    ~Generator();

    // All twisters share one lock, so that only one lock must be held during a fork.
    static std::mutex& twister_mutex();

    State load() const;
    void check_reseeding(const char* what, const PhiloxKey* next) const;
    State exchange_if(State expected, State desired) const;
    void store(State state);

    Device device_;
    std::atomic<RandomStream> stream_{RandomStream::Philox};
    // Null if the stream has never been `Torch`.
    std::unique_ptr<MersenneTwister> twister_;
    uint64_t draws_ = 0;  // the number of Draw objects that have been created
    alignas(16) mutable State state_;
};

/// A scope that restores the state of a generator if an exception ends the scope: an operator that fails must not change
/// the numbers that are drawn afterwards. If another thread has drawn from the generator meanwhile, the state is not
/// restored, because this would repeat the numbers of the other thread. Within a scope, further scopes of the same thread
/// and generator do nothing.
class RL_API DrawScope {
  public:
    /// Null stands for the default generator.
    explicit DrawScope(Generator* generator);
    ~DrawScope();
    DrawScope(const DrawScope&) = delete;
    DrawScope& operator=(const DrawScope&) = delete;

  private:
    friend class Generator;

    static DrawScope* of(const Generator& generator);
    void restore();

    Generator* generator_ = nullptr;  // null: a scope within another
    DrawScope* outer_ = nullptr;
    int exceptions_ = 0;
    uint64_t streams_ = 0;  // number of Philox streams that this thread has reserved
    Generator::State first_ = 0;  // state before the first of them
    uint64_t draws_ = 0, first_draw_ = 0;  // the same for draws from the twister
    TwisterSnapshot snapshot_;
};

/// The generator that operators use when the caller passes none.
RL_API Generator& default_generator();

}  // namespace rushlight
