// The CPU's services for the kernels of one call. Scratch blocks are given back when they have returned or thrown.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight {

class CpuContext {
  public:
    CpuContext() : context_{scratch, {}, this, nullptr} {}
    ~CpuContext() {
        if (last_) [[unlikely]]
            release();
    }
    CpuContext(const CpuContext&) = delete;
    KernelContext* get(PhiloxKey key) {
        context_.random = key;
        return &context_;
    }

  private:
    struct Block;
    static void* scratch(KernelContext* context, size_t nbytes);
    void release();

    KernelContext context_;
    Block* last_ = nullptr;
};

}  // namespace rushlight
