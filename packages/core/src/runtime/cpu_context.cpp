#include "runtime/cpu_context.h"

#include "rushlight/allocator.h"

namespace rushlight {

struct alignas(64) CpuContext::Block {
    Block* before;
    size_t nbytes;
    Allocation memory;
};

void* CpuContext::scratch(KernelContext* context, size_t nbytes) {
    auto* self = static_cast<CpuContext*>(context->impl);
    const size_t all = sizeof(Block) + nbytes;
    const Allocation memory = allocate(all);
    auto* block = static_cast<Block*>(memory.data);
    *block = {self->last_, all, memory};
    self->last_ = block;
    return block + 1;
}

void CpuContext::release() {
    while (Block* block = last_) {
        last_ = block->before;
        const Allocation memory = block->memory;
        rushlight::release(memory, block->nbytes);
    }
}

}  // namespace rushlight
