#include "cpu/questions.h"

#include "cpu/capability.h"
#include "cpu/onednn/library.h"

namespace rushlight::cpu {

const char* capability_in_use() { return name(capability()); }

#if RUSHLIGHT_WITH_ONEDNN
bool has_onednn() { return onednn::available(); }
void use_onednn(bool on) { onednn::enable(on); }
#else
bool has_onednn() { return false; }
void use_onednn(bool) {}
#endif

}  // namespace rushlight::cpu
