#include "runtime/cpu_context.h"

#include "rushlight/allocator.h"

namespace rushlight {

struct alignas(64) CpuContext::Block {
    Block* before;
    size_t nbytes;
};

void* CpuContext::scratch(KernelContext* context, size_t nbytes) {
    auto* self = static_cast<CpuContext*>(context->impl);
    size_t all = sizeof(Block) + nbytes;
    auto* block = static_cast<Block*>(cpu_allocate(all));
    *block = {self->last_, all};
    self->last_ = block;
    return block + 1;
}

void CpuContext::release() {
    while (Block* block = last_) {
        last_ = block->before;
        cpu_release(block, block->nbytes);
    }
}

}  // namespace rushlight
