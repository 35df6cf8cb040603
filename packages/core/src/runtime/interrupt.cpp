#include "rushlight/interrupt.h"

#include "rushlight/error.h"

namespace rushlight {

namespace detail {
std::atomic<InterruptHook> interrupt_hook{nullptr};
void throw_interrupted() { throw Error(ErrorKind::Interrupted, "interrupted"); }
}  // namespace detail

InterruptHook set_interrupt_hook(InterruptHook hook) { return detail::interrupt_hook.exchange(hook); }

}  // namespace rushlight
