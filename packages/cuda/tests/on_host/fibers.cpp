// Runs the threads of a block on one host thread. Each of them runs until it reaches a barrier or ends. When all have done
// so, the next round begins.
#include <sys/mman.h>

#include <stdexcept>
#include <vector>

#include "cuda/launch.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

// Switches to the fiber whose stack pointer is `to`, and stores the stack pointer of the current fiber in `from`.
// swapcontext does the same with two system calls.
extern "C" void switch_fiber(void** from, void* to);
asm(R"(
.pushsection .text
.type switch_fiber, @function
.hidden switch_fiber
.globl switch_fiber
switch_fiber:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.popsection
)");

namespace {

struct Fiber {
    void* stack;
    dim3 index;
    bool ended = false;
};

struct Block {
    void* turn;
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
    Fiber& self = block->fibers[block->running];
    self.ended = true;
    switch_fiber(&self.stack, block->turn);
}

/// A stack on which `enter` has not started: six registers and the return address.
void* prepared(char* stack) {
    constexpr size_t kRegisters = 6;
    auto** top = reinterpret_cast<void**>(stack + kStack) - 1;  // the position that a call leaves
    top[0] = nullptr;
    top[-1] = reinterpret_cast<void*>(enter);
    for (size_t i = 0; i < kRegisters; ++i) top[-2 - static_cast<ptrdiff_t>(i)] = nullptr;
    return top - 1 - kRegisters;
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
        fiber.stack = prepared(memory + i * kStack);
    }
    // Every thread must reach every barrier. With a wrong kernel, a GPU would hang.
    for (size_t left = threads.x; left > 0;) {
        const size_t before = left;
        for (unsigned i = 0; i < threads.x; ++i) {
            Fiber& fiber = own.fibers[i];
            if (fiber.ended) continue;
            own.running = i;
            threadIdx = fiber.index;
            switch_fiber(&own.turn, fiber.stack);
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
    switch_fiber(&self.stack, block->turn);
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
