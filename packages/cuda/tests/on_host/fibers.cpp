// The threads of a block on one thread of the host. A thread runs until it reaches a barrier or ends; when all have, the next
// round begins.
#include <sys/mman.h>
#include <ucontext.h>

#include <stdexcept>
#include <vector>

#include "cuda/launch.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

struct Fiber {
    ucontext_t context;
    dim3 index;
    bool ended = false;
};

struct Block {
    ucontext_t turn;
    std::vector<Fiber> fibers;
    size_t running = 0;
    const std::function<void()>* thread = nullptr;
};
thread_local Block* block = nullptr;

constexpr size_t kStack = 64 << 10;

char* stacks(size_t count) {
    thread_local size_t have = 0;
    thread_local char* memory = nullptr;
    if (count > have) {
        memory = static_cast<char*>(mmap(nullptr, count * kStack, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        have = count;
    }
    return memory;
}

void enter() {
    (*block->thread)();
    block->fibers[block->running].ended = true;
}

void run_block(dim3 threads, const std::function<void()>& thread) {
    Block own;
    own.thread = &thread;
    own.fibers.resize(threads.x);
    block = &own;
    char* const memory = stacks(threads.x);
    for (unsigned i = 0; i < threads.x; ++i) {
        Fiber& fiber = own.fibers[i];
        fiber.index = dim3(i);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = memory + i * kStack;
        fiber.context.uc_stack.ss_size = kStack;
        fiber.context.uc_link = &own.turn;
        makecontext(&fiber.context, enter, 0);
    }
    // Every thread passes every barrier, or the kernel is wrong: a GPU would hang.
    for (size_t left = threads.x; left > 0;) {
        const size_t before = left;
        for (unsigned i = 0; i < threads.x; ++i) {
            Fiber& fiber = own.fibers[i];
            if (fiber.ended) continue;
            own.running = i;
            threadIdx = fiber.index;
            swapcontext(&own.turn, &fiber.context);
            left -= fiber.ended;
        }
        if (left != 0 && left != before)
            throw std::runtime_error("some threads of a block ended before a barrier");
    }
    block = nullptr;
}

}  // namespace

void __syncthreads() {
    Fiber& self = block->fibers[block->running];
    swapcontext(&self.context, &block->turn);
}

namespace rushlight::cuda {

void run_blocks(dim3 blocks, dim3 threads, const std::function<void()>& thread) {
    gridDim = blocks;
    blockDim = threads;
    for (unsigned y = 0; y < blocks.y; ++y)
        for (unsigned x = 0; x < blocks.x; ++x) {
            blockIdx = dim3(x, y);
            run_block(threads, thread);
        }
}

}  // namespace rushlight::cuda
