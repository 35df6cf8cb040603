#include "rushlight/waiting.h"

#include <atomic>

namespace rushlight {

static std::atomic<const WaitFunctions*> wait_functions{nullptr};

void set_wait_functions(const WaitFunctions* functions) { wait_functions.store(functions); }

Waiting::Waiting() : functions_(wait_functions.load()), held_(functions_ ? functions_->begin() : nullptr) {}
Waiting::~Waiting() {
    if (held_) functions_->end(held_);
}

}  // namespace rushlight
