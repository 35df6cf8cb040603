#include "births.h"

#include <pthread.h>

#include <mutex>
#include <unordered_map>

#include "rushlight/tracing.h"

namespace rushlight::graph {

constinit thread_local Capturing capturing RL_TLS_MODEL;

namespace {

struct Births {
    std::mutex mutex;
    std::unordered_map<const void*, Birth> of;  // the key is the address
    int captures = 0;
    uint64_t count = 0;  // of all births so far
};
Births& births();

// The lock is held during a fork, because in the child process no other thread could release it.
Births* make_births() {
    pthread_atfork([] { births().mutex.lock(); }, [] { births().mutex.unlock(); },
                   [] { births().mutex.unlock(); });
    return new Births;  // never destroyed: threads may outlive static objects
}
Births& births() {
    static Births* b = make_births();
    return *b;
}

}  // namespace

void watch_births(bool on) {
    Births& b = births();
    std::lock_guard guard(b.mutex);
    b.captures += on ? 1 : -1;
    if (b.captures == (on ? 1 : 0)) set_tracer_watches_memory(on);
    if (b.captures == 0) b.of.clear();
}

uint64_t count_births() {
    Births& b = births();
    std::lock_guard guard(b.mutex);
    return b.count;
}

std::optional<Birth> birth_of(const Storage* storage, uint64_t before) {
    Births& b = births();
    std::lock_guard guard(b.mutex);
    auto at = b.of.find(storage->data());
    return at == b.of.end() || at->second.order <= before ? std::nullopt : std::optional(at->second);
}

void note_birth(const void* data) {
    Births& b = births();
    std::lock_guard guard(b.mutex);
    b.of[data] = {capturing.number, capturing.depth > 0, capturing.block, ++b.count};
}

void forget_birth(const void* data) {
    Births& b = births();
    std::lock_guard guard(b.mutex);
    b.of.erase(data);
}

}  // namespace rushlight::graph
