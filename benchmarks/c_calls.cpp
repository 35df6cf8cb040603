// Measures how much longer a call through the C interface takes than the typed call in C++. The call is an add of one
// element. Blocks are interleaved, and the figures are medians of rounds, in CPU time.
//
//     core=$(python -c "import rushlight_core; print(rushlight_core.__path__[0])")
//     g++ -O2 -std=c++20 benchmarks/c_calls.cpp -o c_calls -I $core/include -L $core/lib -lrushlight -Wl,-rpath,$core/lib
//     ./c_calls
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "rushlight/c_support.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/ones.h"

using namespace rushlight;

namespace {

constexpr int kRounds = 1001, kCalls = 1000;

// Returns the CPU time of this thread, which excludes the time of other programs.
double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

template <class F>
void measure(std::vector<double>& nanoseconds, F&& call) {
    const double begin = now();
    for (int i = 0; i < kCalls; ++i) call();
    nanoseconds.push_back((now() - begin) / kCalls);
}

double median(std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
    return values[kRounds / 2];
}

void check(rl_status status) {
    if (status == RL_OK) return;
    std::fprintf(stderr, "%s\n", rl_error_text());
    std::exit(1);
}

}  // namespace

int main() {
    const Tensor a = ops::ones({1}), b = ops::ones({1});
    rl_value given[3] = {};
    given[0].kind = given[1].kind = RL_TENSOR;
    given[0].as.tensor = c::handle_of(a);
    given[1].as.tensor = c::handle_of(b);
    given[2].kind = RL_INTEGER;
    given[2].as.integer = 1;
    std::vector<double> typed, by_name, function;
    for (int round = 0; round < kRounds; ++round) {
        measure(typed, [&] { ops::add(a, b); });
        measure(by_name, [&] {
            rl_value result;
            check(rl_call("add", given, 2, &result, 1));
            rl_value_free(&result);
        });
        measure(function, [&] {
            rl_tensor* result;
            check(rl_op_add(&given[0], &given[1], &given[2], &result));
            rl_tensor_free(result);
        });
    }
    const double base = median(typed), name = median(by_name), direct = median(function);
    std::printf("ops::add %.1f ns; rl_call %.1f ns, +%.1f; rl_op_add %.1f ns, +%.1f\n", base, name,
                name - base, direct, direct - base);
}
