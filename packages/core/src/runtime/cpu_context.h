// The context of the CPU kernels of one call. Scratch blocks are released when the kernels have returned or thrown.
#pragma once

#include "rushlight/kernel.h"

namespace rushlight {

class Generator;

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

    /// Makes kernels draw their random numbers in order from the Mersenne twister of `generator`.
    void draw_from(Generator* generator) { twister_ = generator; }
    /// The generator from whose Mersenne twister a kernel must draw; null if random numbers are functions of the key.
    static Generator* twister(const KernelContext* context) {
        return static_cast<CpuContext*>(context->impl)->twister_;
    }

  private:
    struct Block;
    static void* scratch(KernelContext* context, size_t nbytes);
    void release();

    KernelContext context_;
    Block* last_ = nullptr;
    Generator* twister_ = nullptr;
};

}  // namespace rushlight
