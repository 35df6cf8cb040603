#include "rushlight/caller_locks.h"

#include <atomic>

namespace rushlight {

static std::atomic<const CallerLocks*> caller_locks{nullptr};
static thread_local int kept = 0;  // number of KeptCallerLocks scopes of this thread

const CallerLocks* set_caller_locks(const CallerLocks* functions) { return caller_locks.exchange(functions); }

void WithoutCallerLocks::release(While what) {
    if (kept > 0) return;
    functions_ = caller_locks.load(std::memory_order_acquire);
    if (functions_) held_ = functions_->release(what == While::Waiting);
}

void WithoutCallerLocks::acquire() { functions_->acquire(held_); }

KeptCallerLocks::KeptCallerLocks() { ++kept; }
KeptCallerLocks::~KeptCallerLocks() { --kept; }

}  // namespace rushlight
