#include "rushlight/autograd/c.h"

#include "rushlight/autograd/engine.h"
#include "rushlight/c_support.h"

extern "C" RL_API rl_status rl_autograd_initialize(void) {
    return rushlight::c::guarded([] { rushlight::autograd::initialize(); });
}
