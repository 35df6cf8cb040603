#include "rushlight/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "rushlight/error.h"

namespace rushlight {

namespace {

// The bytes of a saved state, little-endian like all machines we run on.
struct SavedState {
    char magic[8];
    uint64_t seed, offset;
};
constexpr char kMagic[8] = {'r', 'l', 'p', 'h', 'i', 'l', 'x', '1'};

}  // namespace

Ref<Generator> Generator::make(Device device, uint64_t seed) {
    return Ref<Generator>::adopt(new Generator(device, seed));
}

void Generator::destroy(Generator* generator) { delete generator; }

// Both halves change in one instruction, so that a draw never pairs one seed with another's offset. A lock
// would have to be taken around every fork. The instruction is older than any processor we support, but not
// in the compiler's baseline, hence the target.
[[gnu::target("cx16")]] Generator::State Generator::exchange_if(State expected, State desired) const {
    return __sync_val_compare_and_swap(&state_, expected, desired);
}

Generator::State Generator::load() const { return exchange_if(0, 0); }

void Generator::store(State state) {
    State seen = load();
    for (State now; (now = exchange_if(seen, state)) != seen;) seen = now;
}

void Generator::manual_seed(uint64_t seed) { store(seed); }

uint64_t Generator::seed() {
    uint64_t fresh = 0;
    RL_CHECK(getrandom(&fresh, sizeof fresh, 0) == sizeof fresh, throw_runtime,
             "seed(): the system gave no entropy: %s", std::strerror(errno));
    manual_seed(fresh);
    return fresh;
}

uint64_t Generator::initial_seed() const { return static_cast<uint64_t>(load()); }

PhiloxKey Generator::reserve(uint64_t streams) {
    State seen = load();
    for (State now; (now = exchange_if(seen, seen + (State{streams} << 64))) != seen;) seen = now;
    return {static_cast<uint64_t>(seen), static_cast<uint64_t>(seen >> 64)};
}

std::vector<uint8_t> Generator::get_state() const {
    State state = load();
    SavedState saved;
    std::memcpy(saved.magic, kMagic, sizeof kMagic);
    saved.seed = static_cast<uint64_t>(state);
    saved.offset = static_cast<uint64_t>(state >> 64);
    std::vector<uint8_t> bytes(sizeof saved);
    std::memcpy(bytes.data(), &saved, sizeof saved);
    return bytes;
}

void Generator::set_state(std::span<const uint8_t> bytes) {
    SavedState saved;
    RL_CHECK(bytes.size() == sizeof saved, throw_runtime,
             "set_state(state): got %zu bytes, needs the %zu of get_state()", bytes.size(), sizeof saved);
    std::memcpy(&saved, bytes.data(), sizeof saved);
    RL_CHECK(std::memcmp(saved.magic, kMagic, sizeof kMagic) == 0, throw_runtime,
             "set_state(state): the bytes are not a state of this generator\n"
             "hint: the state of another library or version cannot be restored; use manual_seed() instead");
    store(State{saved.offset} << 64 | saved.seed);
}

Generator& default_generator() {
    static Generator* const generator = Generator::make().release();  // never destroyed
    return *generator;
}

}  // namespace rushlight
