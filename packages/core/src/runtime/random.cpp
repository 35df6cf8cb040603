#include "rushlight/random.h"

#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "runtime/mersenne_twister.h"
#include "rushlight/error.h"
#include "rushlight/random_uses.h"

namespace rushlight {

namespace {

// The bytes of a saved state, little-endian like all machines that we support.
struct SavedState {
    char magic[8];
    uint64_t seed, offset;
};
constexpr char kMagic[8] = {'r', 'l', 'p', 'h', 'i', 'l', 'x', '1'};

RandomStream stream_of_environment() {
    const char* name = std::getenv("RUSHLIGHT_RANDOM");
    if (!name || std::string_view(name) == "philox") return RandomStream::Philox;
    RL_CHECK(std::string_view(name) == "torch", throw_value,
             "RUSHLIGHT_RANDOM: must be \"philox\" or \"torch\", got \"%s\"", name);
    return RandomStream::Torch;
}

// The innermost scope of this thread that is not within another scope of the same generator.
constinit thread_local DrawScope* scope RL_TLS_MODEL = nullptr;

// The result of uses_of_default_generator().
constinit thread_local uint64_t uses RL_TLS_MODEL = 0;
std::atomic<const Generator*> the_default{nullptr};
void count_use(const Generator& generator) {
    uses += &generator == the_default.load(std::memory_order_relaxed);
}

std::atomic<RandomStream>& chosen_stream() {
    static std::atomic<RandomStream> chosen = stream_of_environment();
    return chosen;
}

}  // namespace

RandomStream random_stream() { return chosen_stream().load(std::memory_order_relaxed); }

void set_random_stream(RandomStream stream) {
    default_generator().set_stream(stream);
    chosen_stream().store(stream, std::memory_order_relaxed);
}

std::mutex& Generator::twister_mutex() {
    static std::mutex& mutex = []() -> std::mutex& {
        static std::mutex made;
        // Without this, a child process would wait without end for a thread of its parent that held the lock during the
        // fork.
        pthread_atfork([] { made.lock(); }, [] { made.unlock(); }, [] { made.unlock(); });
        return made;
    }();
    return mutex;
}

Generator::Generator(Device device, uint64_t seed) : device_(device), state_(seed) {
    if (device.type == DeviceType::CPU) set_stream(random_stream());
}

Generator::~Generator() = default;

void Generator::set_stream(RandomStream stream) {
    std::lock_guard lock(twister_mutex());
    if (stream_.load(std::memory_order_relaxed) == stream) return;
    check_reseeding("set_stream(stream)", nullptr);
    const uint64_t seed = initial_seed();
    if (stream == RandomStream::Torch) {
        if (twister_) *twister_ = MersenneTwister(seed);
        else twister_ = std::make_unique<MersenneTwister>(seed);
    }
    ++draws_;
    count_use(*this);
    store(seed);
    stream_.store(stream, std::memory_order_release);
}

Ref<Generator> Generator::make(Device device, uint64_t seed) {
    return Ref<Generator>::adopt(new Generator(device, seed));
}

void Generator::destroy(Generator* generator) { delete generator; }

// One instruction changes both halves, so that a draw never combines one seed with the offset of another. A lock would
// have to be taken around every fork. All processors that we support have this instruction, but the compiler's baseline
// lacks it, hence the target attribute.
[[gnu::target("cx16")]] Generator::State Generator::exchange_if(State expected, State desired) const {
    return __sync_val_compare_and_swap(&state_, expected, desired);
}

Generator::State Generator::load() const { return exchange_if(0, 0); }

void Generator::store(State state) {
    State seen = load();
    for (State now; (now = exchange_if(seen, state)) != seen;) seen = now;
}

constinit std::atomic<void (*)(const char*, PhiloxKey, const PhiloxKey*)> detail::reseeding_check{nullptr};

void Generator::check_reseeding(const char* what, const PhiloxKey* next) const {
    const auto check = detail::reseeding_check.load(std::memory_order_relaxed);
    if (!check || this != the_default.load(std::memory_order_relaxed)) return;
    const State now = load();
    check(what, {static_cast<uint64_t>(now), static_cast<uint64_t>(now >> 64)}, next);
}

void Generator::manual_seed(uint64_t seed) {
    check_reseeding("manual_seed(seed)", nullptr);
    count_use(*this);
    store(seed);
    if (stream() == RandomStream::Torch) *Draw(*this) = MersenneTwister(seed);
}

uint64_t Generator::seed() {
    check_reseeding("seed()", nullptr);
    uint64_t fresh = 0;
    RL_CHECK(getrandom(&fresh, sizeof fresh, 0) == sizeof fresh, throw_runtime,
             "seed(): the system gave no entropy: %s", std::strerror(errno));
    manual_seed(fresh);
    return fresh;
}

uint64_t Generator::initial_seed() const { return static_cast<uint64_t>(load()); }

PhiloxKey Generator::reserve(uint64_t streams) {
    count_use(*this);
    State seen = load();
    for (State now; (now = exchange_if(seen, seen + (State{streams} << 64))) != seen;) seen = now;
    if (DrawScope* own = DrawScope::of(*this)) {
        if (own->streams_ == 0) own->first_ = seen;
        own->streams_ += streams;
    }
    return {static_cast<uint64_t>(seen), static_cast<uint64_t>(seen >> 64)};
}

Generator::Draw::Draw(Generator& generator) : lock_(twister_mutex()), twister_(*generator.twister_) {
    count_use(generator);
    if (DrawScope* own = DrawScope::of(generator)) {
        if (own->draws_++ == 0) own->first_draw_ = generator.draws_;
        twister_.keep(&own->snapshot_);
    }
    ++generator.draws_;
}

Generator::Draw::~Draw() { twister_.keep(nullptr); }

DrawScope::DrawScope(Generator* generator) {
    Generator& drawn = generator ? *generator : default_generator();
    if (of(drawn)) return;
    generator_ = &drawn;
    exceptions_ = std::uncaught_exceptions();
    outer_ = scope;
    scope = this;
}

DrawScope::~DrawScope() {
    if (!generator_) return;
    scope = outer_;
    if (std::uncaught_exceptions() > exceptions_) [[unlikely]]
        restore();
}

DrawScope* DrawScope::of(const Generator& generator) {
    return scope && scope->generator_ == &generator ? scope : nullptr;
}

void DrawScope::restore() {
    using State = Generator::State;
    if (streams_ > 0) generator_->exchange_if(first_ + (State{streams_} << 64), first_);
    if (draws_ == 0) return;
    KeptCallerLocks kept;
    std::lock_guard lock(Generator::twister_mutex());
    if (generator_->draws_ == first_draw_ + draws_) generator_->twister_->restore(snapshot_);
}

std::vector<uint8_t> Generator::get_state() const {
    State state = load();
    if (stream() == RandomStream::Torch) {
        std::vector<uint8_t> bytes(MersenneTwister::kStateBytes);
        const uint64_t before = uses;
        Draw(const_cast<Generator&>(*this))
            ->save(std::span<uint8_t, MersenneTwister::kStateBytes>(bytes),
                   static_cast<uint64_t>(state >> 64));
        uses = before;  // the state is only read
        return bytes;
    }
    SavedState saved;
    std::memcpy(saved.magic, kMagic, sizeof kMagic);
    saved.seed = static_cast<uint64_t>(state);
    saved.offset = static_cast<uint64_t>(state >> 64);
    std::vector<uint8_t> bytes(sizeof saved);
    std::memcpy(bytes.data(), &saved, sizeof saved);
    return bytes;
}

void Generator::set_state(std::span<const uint8_t> bytes) {
    count_use(*this);
    if (bytes.size() == MersenneTwister::kStateBytes) {
        MersenneTwister twister(0);
        const uint64_t offset = twister.restore(bytes.first<MersenneTwister::kStateBytes>());
        const PhiloxKey next{twister.initial_seed(), offset};
        check_reseeding("set_state(state)", &next);
        set_stream(RandomStream::Torch);
        *Draw(*this) = twister;
        return store(State{offset} << 64 | twister.initial_seed());
    }
    SavedState saved;
    RL_CHECK(bytes.size() == sizeof saved, throw_runtime,
             "set_state(state): got %zu bytes, but a state from get_state() has %zu bytes, or %zu bytes if "
             "it is from PyTorch",
             bytes.size(), sizeof saved, MersenneTwister::kStateBytes);
    std::memcpy(&saved, bytes.data(), sizeof saved);
    RL_CHECK(std::memcmp(saved.magic, kMagic, sizeof kMagic) == 0, throw_runtime,
             "set_state(state): the bytes are not a state of this generator\n"
             "hint: the state of another library or version cannot be restored; use manual_seed() instead");
    const PhiloxKey next{saved.seed, saved.offset};
    check_reseeding("set_state(state)", &next);
    set_stream(RandomStream::Philox);
    store(State{saved.offset} << 64 | saved.seed);
}

Generator& default_generator() {
    static Generator* const generator = [] {
        Generator* made = Generator::make().release();  // never destroyed
        the_default.store(made, std::memory_order_relaxed);
        return made;
    }();
    return *generator;
}

uint64_t uses_of_default_generator() { return uses; }

}  // namespace rushlight
