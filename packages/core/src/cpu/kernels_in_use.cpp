#include "cpu/kernels_in_use.h"

#include <atomic>

#include "cpu/capability.h"
#include "cpu/onednn/library.h"

namespace rushlight::cpu {
namespace {

std::atomic<bool> winograd_on{true};

}  // namespace

const char* capability_in_use() { return name(capability()); }

#if RUSHLIGHT_WITH_ONEDNN
bool has_onednn() { return onednn::available(); }
void use_onednn(bool on) { onednn::enable(on); }
bool onednn_in_use() { return onednn::enabled(); }
#else
bool has_onednn() { return false; }
void use_onednn(bool) {}
bool onednn_in_use() { return false; }
#endif

bool winograd() { return winograd_on.load(std::memory_order_relaxed); }
void use_winograd(bool on) { winograd_on.store(on, std::memory_order_relaxed); }

}  // namespace rushlight::cpu
