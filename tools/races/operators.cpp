// Operators and backward passes on several threads, without Python's lock. together.py builds and runs it.
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rushlight/allocator.h"
#include "rushlight/autograd/engine.h"
#include "rushlight/autograd/function.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/conv2d.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/linear.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ones.h"
#include "rushlight/ops/rand.h"
#include "rushlight/ops/softmax.h"
#include "rushlight/ops/sort.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/tanh.h"
#include "rushlight/parallel.h"

namespace rl = rushlight;
namespace ops = rushlight::ops;

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 5;

template <class F>
void at_once(F work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
}

bool good = true;
std::mutex good_mutex;
void check(const char* what, double got, double wanted) {
    if (std::fabs(got - wanted) <= 1e-3 * std::fabs(wanted) + 1e-6) return;
    std::lock_guard lock(good_mutex);
    std::printf("%s: got %g, expected %g\n", what, got, wanted);
    good = false;
}

float total(const rl::Tensor& t) { return *ops::sum(t).data<float>(); }

/// Threads read the same tensors, and one default generator.
void operators() {
    const int64_t square[] = {120, 120}, image[] = {2, 4, 16, 16}, filter[] = {8, 4, 3, 3}, rows[] = {4};
    rl::Tensor a = ops::rand(square), x = ops::rand(image), w = ops::rand(filter);
    rl::Tensor index = rl::make_tensor(rows, rl::DType::Int64);
    for (int64_t i = 0; i < 4; ++i) index.data<int64_t>()[i] = 7 * i;
    auto results = [&] {
        return std::vector<float>{
            total(ops::matmul(a, ops::t(a))),
            total(ops::conv2d(x, w, {}, rl::kInts<1, 1>, rl::kInts<1, 1>)),
            total(std::get<0>(ops::sort(a))),
            total(ops::softmax(ops::cumsum(ops::t(a), 1), 0)),
            total(ops::index_select(a, 0, index)),
            total(ops::exp(ops::add(a, ops::clone(ops::t(a))))),
        };
    };
    const std::vector<float> wanted = results();
    at_once([&](int) {
        for (int round = 0; round < kRounds; ++round) {
            const std::vector<float> got = results();
            for (size_t i = 0; i < got.size(); ++i) check("an operator", got[i], wanted[i]);
            check("random numbers", total(ops::rand(square)) > 0, 1);
        }
    });
}

/// Each thread creates tensors, and releases tensors that other threads have created.
void memory() {
    rl::Tensor made[kThreads];
    std::mutex mutex;
    const int64_t sizes[] = {1, 50, 3000, 100'000, 700'000};
    at_once([&](int thread) {
        for (int round = 0; round < 200; ++round) {
            const int64_t size = sizes[(round + thread) % 5];
            rl::Tensor fresh = ops::ones(rl::IntList(&size, 1)), former;
            check("what another thread wrote", total(fresh), static_cast<double>(size));
            {
                std::lock_guard lock(mutex);
                former = std::exchange(made[(thread + round) % kThreads], fresh);
            }
            if (former.defined()) check("what another thread made", former.data<float>()[0], 1);
            if (thread == 0 && round % 20 == 0) rl::empty_cache();
            if (thread == 1) rl::memory_statistics();
        }
    });
}

/// Threads run backward passes over graphs that share the parameters.
void passes() {
    const int64_t inputs[] = {16, 40}, shape[] = {60, 40}, ends[] = {5, 60};
    rl::Tensor x = ops::rand(inputs), first = ops::rand(shape), second = ops::rand(ends);
    for (const rl::Tensor& parameter : {first, second}) parameter.set_requires_grad(true);
    auto loss = [&] { return ops::sum(ops::linear(ops::tanh(ops::linear(x, first)), second)); };
    rl::autograd::backward(loss());
    const float wanted = total(second.grad());
    at_once([&](int) {
        for (int round = 0; round < kRounds; ++round) rl::autograd::backward(loss());
    });
    check("a gradient", total(second.grad()), wanted * (1 + kThreads * kRounds));
}

}  // namespace

int main() {
    rl::autograd::initialize();
    rl::set_num_threads(3);
    operators();
    memory();
    passes();
    return good ? 0 : 1;
}
