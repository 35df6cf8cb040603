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

namespace {

// If rows have fewer than kShort elements, the loop runs along columns instead, which must have at least kLong
// elements.
constexpr int64_t kShort = 5, kLong = 32;

bool is_short(int64_t row) { return row < kShort; }

// If the innermost dimension is short, makes the nearest long dimension the innermost, because the overhead per row would
// exceed the work.
void set_columns(PointwisePlan& plan) {
    const int last = plan.ndim - 1;
    if (!is_short(plan.sizes[last])) return;
    for (int d = last - 1; d >= 0; --d) {
        if (plan.sizes[d] < kLong) continue;
        std::rotate(plan.sizes + d, plan.sizes + d + 1, plan.sizes + last + 1);
        for (int i = 0; i < plan.num_operands; ++i)
            std::rotate(plan.strides[i] + d, plan.strides[i] + d + 1, plan.strides[i] + last + 1);
        return;
    }
}

}  // namespace

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
        for (int i = 0; i < plan.num_operands; ++i)
            plan.strides[i][0] = static_cast<int64_t>(itemsize(plan.dtype[i]));
        kept = 1;
    }
    plan.ndim = kept;
    set_columns(plan);
}

namespace {

// Number of elements that are staged at a time. The blocks of all operands fit in the first-level cache.
constexpr int64_t kBlock = 512;

// Runs the loop over rows of the innermost dimension. Operands whose dtype is not the loop's are staged: their elements
// are converted to or from a block. If the plan packs, operands whose elements are not adjacent are staged too.
struct Inner {
    const PointwisePlan& plan;
    // Copies a staged input to its block, and a staged output from its block. Null for operands that are not staged.
    LoopFn to_loop[kMaxOperands];
    bool any = false;

    explicit Inner(const PointwisePlan& p) : plan(p) {
        for (int i = 0; i < p.num_operands; ++i) {
            const bool staged = p.dtype[i] != p.loop_dtype[i] || (p.packs && !is_adjacent(i));
            any |= staged;
            to_loop[i] = !staged  ? nullptr
                         : i == 0 ? cast_loop(p.dtype[0], p.loop_dtype[0])
                                  : cast_loop(p.loop_dtype[i], p.dtype[i]);
        }
    }

    // Whether the elements of a row are adjacent, or equal.
    bool is_adjacent(int i) const {
        const int64_t stride = plan.strides[i][plan.ndim - 1];
        return stride == static_cast<int64_t>(itemsize(plan.dtype[i])) || (i > 0 && stride == 0);
    }

    // Computes `rows` rows of `n` elements.
    void operator()(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides,
                    int64_t rows) const {
        if (!any) return plan.loop(data, strides, n, row_strides, rows, plan.params);
        if (n * rows <= kBlock) return stage_and_run(data, strides, n, row_strides, rows);
        const int64_t width = std::min(n, kBlock), height = kBlock / width;
        for (int64_t row = 0; row < rows; row += height) {
            for (int64_t at = 0; at < n; at += width) {
                char* block[kMaxOperands];
                for (int i = 0; i < plan.num_operands; ++i)
                    block[i] = data[i] + row * row_strides[i] + at * strides[i];
                stage_and_run(block, strides, std::min(width, n - at), row_strides,
                              std::min(height, rows - row));
            }
        }
    }

    // Computes rows of at most kBlock elements if some of the operands are staged.
    void stage_and_run(char* const* data, const int64_t* strides, int64_t n, const int64_t* row_strides,
                       int64_t rows) const {
        alignas(64) char buffer[kMaxOperands][kBlock * 16];
        char* block[kMaxOperands];
        int64_t step[kMaxOperands], row_step[kMaxOperands];
        for (int i = 0; i < plan.num_operands; ++i) {
            block[i] = data[i];
            step[i] = strides[i];
            row_step[i] = row_strides[i];
            if (!to_loop[i]) continue;
            const auto size = static_cast<int64_t>(itemsize(plan.loop_dtype[i]));
            block[i] = buffer[i];
            if (i > 0 && strides[i] == 0) {  // one value for each row
                step[i] = 0;
                row_step[i] = size;
                char* pair[2] = {block[i], data[i]};
                const int64_t pair_steps[2] = {size, row_strides[i]};
                run_row(to_loop[i], pair, pair_steps, rows);
                continue;
            }
            step[i] = size;
            row_step[i] = n * size;
            if (i == 0) continue;
            char* pair[2] = {block[i], data[i]};
            const int64_t pair_steps[2] = {step[i], strides[i]},
                          pair_row_steps[2] = {row_step[i], row_strides[i]};
            to_loop[i](pair, pair_steps, n, pair_row_steps, rows, nullptr);
        }
        plan.loop(block, step, n, row_step, rows, plan.params);
        if (to_loop[0]) {
            char* pair[2] = {data[0], block[0]};
            const int64_t pair_steps[2] = {strides[0], step[0]},
                          pair_row_steps[2] = {row_strides[0], row_step[0]};
            to_loop[0](pair, pair_steps, n, pair_row_steps, rows, nullptr);
        }
    }
};

// Walks over the elements in row-major order of the plan's sizes.
class Walk {
  public:
    explicit Walk(const PointwisePlan& plan) : plan_(plan), inner_(plan), last_(plan.ndim - 1) {
        for (int i = 0; i < plan.num_operands; ++i) {
            strides_[i] = plan.strides[i][last_];
            row_strides_[i] = last_ > 0 ? plan.strides[i][last_ - 1] : 0;
        }
    }

    // Computes elements [begin, end).
    void elements(int64_t begin, int64_t end) const {
        const int64_t row = plan_.sizes[last_];
        int64_t index[kMaxDims];
        char* data[kMaxOperands];
        int64_t rest = begin;
        for (int d = last_; d >= 0; --d) {
            index[d] = rest % plan_.sizes[d];
            rest /= plan_.sizes[d];
        }
        move_to(index, plan_.ndim, data);
        if (last_ == 0) return inner_(data, strides_, end - begin, row_strides_, 1);
        while (begin < end) {
            if (index[last_] == 0 && end - begin >= row) {
                // Computes whole rows, along the second-to-last dimension.
                const int64_t rows = std::min(plan_.sizes[last_ - 1] - index[last_ - 1], (end - begin) / row);
                inner_(data, strides_, row, row_strides_, rows);
                for (int i = 0; i < plan_.num_operands; ++i) data[i] += rows * row_strides_[i];
                begin += rows * row;
                index[last_ - 1] += rows;
            } else {
                const int64_t n = std::min(row - index[last_], end - begin);
                inner_(data, strides_, n, row_strides_, 1);
                begin += n;
                if (begin >= end) break;
                // Moves to the start of the next row.
                for (int i = 0; i < plan_.num_operands; ++i) data[i] -= index[last_] * strides_[i];
                index[last_] = 0;
                for (int i = 0; i < plan_.num_operands; ++i) data[i] += row_strides_[i];
                ++index[last_ - 1];
            }
            // Carries to the outer indices when an inner dimension is at its end.
            for (int d = last_ - 1; d >= 0 && index[d] == plan_.sizes[d]; --d) {
                for (int i = 0; i < plan_.num_operands; ++i) data[i] -= plan_.sizes[d] * plan_.strides[i][d];
                index[d] = 0;
                if (d == 0) break;
                for (int i = 0; i < plan_.num_operands; ++i) data[i] += plan_.strides[i][d - 1];
                ++index[d - 1];
            }
        }
    }

    // Computes groups [begin, end) of neighbouring columns. The columns are short, so the operands of a group stay in the
    // cache while all its elements are computed. No two threads write to the same column.
    void columns(int64_t begin, int64_t end) const {
        const int64_t length = plan_.sizes[last_], groups = (length + kColumns - 1) / kColumns;
        for (int64_t group = begin; group < end; ++group) {
            int64_t index[kMaxDims], rest = group / groups;
            for (int d = last_ - 2; d >= 0; --d) {
                index[d] = rest % plan_.sizes[d];
                rest /= plan_.sizes[d];
            }
            char* data[kMaxOperands];
            move_to(index, last_ - 1, data);
            const int64_t first = group % groups * kColumns;
            for (int i = 0; i < plan_.num_operands; ++i) data[i] += first * strides_[i];
            inner_(data, strides_, std::min(kColumns, length - first), row_strides_, plan_.sizes[last_ - 1]);
        }
    }

    static constexpr int64_t kColumns = 512;

  private:
    void move_to(const int64_t* index, int ndim, char** data) const {
        for (int i = 0; i < plan_.num_operands; ++i) {
            data[i] = plan_.data[i];
            for (int d = 0; d < ndim; ++d) data[i] += index[d] * plan_.strides[i][d];
        }
    }

    const PointwisePlan& plan_;
    const Inner inner_;
    const int last_;
    int64_t strides_[kMaxOperands], row_strides_[kMaxOperands];
};

}  // namespace

void run(const PointwisePlan& plan) {
    int64_t total = 1;
    for (int d = 0; d < plan.ndim; ++d) total *= plan.sizes[d];
    if (total == 0) return;
    const int last = plan.ndim - 1;
    if (last == 0 && total <= kGrain) {
        int64_t strides[kMaxOperands];
        for (int i = 0; i < plan.num_operands; ++i) strides[i] = plan.strides[i][0];
        return Inner(plan)(plan.data, strides, total, strides, 1);
    }
    const Walk walk(plan);
    if (last > 0 && is_short(plan.sizes[last - 1]) && plan.strides[0][last] > plan.strides[0][last - 1]) {
        const int64_t length = plan.sizes[last], height = plan.sizes[last - 1];
        const int64_t groups = total / (length * height) * ((length + Walk::kColumns - 1) / Walk::kColumns);
        const int64_t grain = std::max<int64_t>(1, kGrain / (std::min(length, Walk::kColumns) * height));
        return parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) { walk.columns(begin, end); });
    }
    if (total <= kGrain) return walk.elements(0, total);
    parallel_for(0, total, kGrain, [&](int64_t begin, int64_t end) { walk.elements(begin, end); });
}

}  // namespace rushlight::cpu
