#include "cpu/pointwise_driver.h"

#include <algorithm>

#include "cpu/cast.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {

void sort_dimensions(PointwisePlan& plan) {
    for (int d = 1; d < plan.ndim; ++d)
        for (int k = d; k > 0 && plan.strides[0][k - 1] < plan.strides[0][k]; --k) {
            std::swap(plan.sizes[k - 1], plan.sizes[k]);
            for (int i = 0; i < plan.num_operands; ++i) std::swap(plan.strides[i][k - 1], plan.strides[i][k]);
        }
}

void coalesce(PointwisePlan& plan) {
    int kept = 0;
    for (int d = 0; d < plan.ndim; ++d) {
        if (plan.sizes[d] == 1) continue;
        bool merge = kept > 0;
        for (int i = 0; i < plan.num_operands && merge; ++i)
            merge = plan.strides[i][kept - 1] == plan.strides[i][d] * plan.sizes[d];
        int into = merge ? kept - 1 : kept++;
        plan.sizes[into] = merge ? plan.sizes[into] * plan.sizes[d] : plan.sizes[d];
        for (int i = 0; i < plan.num_operands; ++i) plan.strides[i][into] = plan.strides[i][d];
    }
    if (kept == 0) {
        plan.sizes[0] = 1;
        for (int i = 0; i < plan.num_operands; ++i) plan.strides[i][0] = 0;
        kept = 1;
    }
    // For rows of a few elements, the overhead per row exceeds the work, so the longest dimension is made the
    // innermost.
    constexpr int64_t kShort = 13, kLong = 32;
    const int last = kept - 1;
    if (plan.sizes[last] < kShort) {
        const int longest = static_cast<int>(std::max_element(plan.sizes, plan.sizes + kept) - plan.sizes);
        if (plan.sizes[longest] >= kLong) {
            std::swap(plan.sizes[last], plan.sizes[longest]);
            for (int i = 0; i < plan.num_operands; ++i)
                std::swap(plan.strides[i][last], plan.strides[i][longest]);
        }
    }
    plan.ndim = kept;
}

namespace {

// Number of elements that are converted at a time. The blocks of all operands fit in the first-level cache.
constexpr int64_t kBlock = 512;

// Runs the loop over a part of the innermost dimension, and converts operands whose dtype is not the loop's.
struct Inner {
    const PointwisePlan& plan;
    bool cast[kMaxOperands];
    LoopFn to_loop[kMaxOperands];  // converts an input to, and the output from, the loop's dtype
    bool any = false;

    explicit Inner(const PointwisePlan& p) : plan(p) {
        for (int i = 0; i < p.num_operands; ++i) {
            cast[i] = p.dtype[i] != p.loop_dtype[i];
            any |= cast[i];
            to_loop[i] = !cast[i] ? nullptr
                         : i == 0 ? cast_loop(p.dtype[0], p.loop_dtype[0])
                                  : cast_loop(p.loop_dtype[i], p.dtype[i]);
        }
    }

    void operator()(char* const* data, const int64_t* strides, int64_t n) const {
        if (!any) return plan.loop(data, strides, n, plan.params);
        alignas(64) char buffer[kMaxOperands][kBlock * 16];
        for (int64_t at = 0; at < n; at += kBlock) {
            int64_t count = std::min(kBlock, n - at);
            char* block[kMaxOperands];
            int64_t step[kMaxOperands];
            for (int i = 0; i < plan.num_operands; ++i) {
                char* here = data[i] + at * strides[i];
                block[i] = cast[i] ? buffer[i] : here;
                step[i] = cast[i] ? static_cast<int64_t>(itemsize(plan.loop_dtype[i])) : strides[i];
                if (cast[i] && i > 0) {
                    char* pair[2] = {buffer[i], here};
                    int64_t pair_steps[2] = {step[i], strides[i]};
                    to_loop[i](pair, pair_steps, count, nullptr);
                }
            }
            plan.loop(block, step, count, plan.params);
            if (cast[0]) {
                char* pair[2] = {data[0] + at * strides[0], buffer[0]};
                int64_t pair_steps[2] = {strides[0], step[0]};
                to_loop[0](pair, pair_steps, count, nullptr);
            }
        }
    }
};

}  // namespace

void run(const PointwisePlan& plan) {
    int64_t total = 1;
    for (int d = 0; d < plan.ndim; ++d) total *= plan.sizes[d];
    if (total == 0) return;
    Inner inner(plan);
    const int last = plan.ndim - 1;
    const int64_t row = plan.sizes[last];

    // Processes elements [begin, end), counted in row-major order of the plan's sizes.
    auto body = [&](int64_t begin, int64_t end) {
        int64_t index[kMaxDims];
        char* data[kMaxOperands];
        int64_t steps[kMaxOperands];
        int64_t rest = begin;
        for (int d = last; d >= 0; --d) {
            index[d] = rest % plan.sizes[d];
            rest /= plan.sizes[d];
        }
        for (int i = 0; i < plan.num_operands; ++i) {
            data[i] = plan.data[i];
            for (int d = 0; d <= last; ++d) data[i] += index[d] * plan.strides[i][d];
            steps[i] = plan.strides[i][last];
        }
        while (begin < end) {
            if (last > 0 && index[last] == 0 && end - begin >= row) {
                // Whole rows, along the last dimension but one.
                const int64_t rows = std::min(plan.sizes[last - 1] - index[last - 1], (end - begin) / row);
                for (int64_t r = 0; r < rows; ++r) {
                    if (inner.any) inner(data, steps, row);
                    else plan.loop(data, steps, row, plan.params);
                    for (int i = 0; i < plan.num_operands; ++i) data[i] += plan.strides[i][last - 1];
                }
                begin += rows * row;
                index[last - 1] += rows;
            } else {
                const int64_t n = std::min(row - index[last], end - begin);
                inner(data, steps, n);
                begin += n;
                if (begin >= end) break;
                // Moves to the start of the next row.
                for (int i = 0; i < plan.num_operands; ++i) data[i] -= index[last] * steps[i];
                index[last] = 0;
                if (last == 0) continue;
                for (int i = 0; i < plan.num_operands; ++i) data[i] += plan.strides[i][last - 1];
                ++index[last - 1];
            }
            // Increments the outer indices whose dimensions are at their ends.
            for (int d = last - 1; d >= 0 && index[d] == plan.sizes[d]; --d) {
                for (int i = 0; i < plan.num_operands; ++i) data[i] -= plan.sizes[d] * plan.strides[i][d];
                index[d] = 0;
                if (d == 0) break;
                for (int i = 0; i < plan.num_operands; ++i) data[i] += plan.strides[i][d - 1];
                ++index[d - 1];
            }
        }
    };
    if (total <= kGrain) body(0, total);
    else parallel_for(0, total, kGrain, body);
}

}  // namespace rushlight::cpu
