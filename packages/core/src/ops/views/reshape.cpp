#include "ops/views.h"

namespace rushlight::views {
namespace {

// Sizes with at most one -1 resolved.
void resolve(const char* op, const Tensor& input, IntList size, ViewSpec& v) {
    int inferred = -1;
    int64_t known = 1;
    for (int64_t n : size) {
        if (n == -1) {
            RL_CHECK(inferred < 0, throw_runtime, "%s(size): only one size may be -1, got %s", op,
                     to_string(size).c_str());
            inferred = v.ndim;
        } else {
            RL_CHECK(n >= 0, throw_runtime, "%s(size): a size cannot be negative, got %s", op, to_string(size).c_str());
            RL_CHECK(!__builtin_mul_overflow(known, n, &known), throw_runtime, "%s(size): %s has too many elements", op,
                     to_string(size).c_str());
        }
        v.push(n, 0);
    }
    bool fits = inferred < 0 ? known == input.numel() : known != 0 && input.numel() % known == 0;
    RL_CHECK(fits, throw_runtime, "%s(size): %s does not hold the %lld elements of shape %s%s", op,
             to_string(size).c_str(), (long long)input.numel(), to_string(input.sizes()).c_str(),
             inferred >= 0 && known == 0 ? "\nhint: -1 is ambiguous beside a size of 0" : "");
    if (inferred >= 0) v.sizes[inferred] = input.numel() / known;
}

// Strides of the new sizes over the same elements; false where they would have to be copied. Runs of old dimensions
// that are contiguous to each other are matched with runs of new ones, from the last.
bool restride(const Tensor& input, ViewSpec& v) {
    if (input.is_contiguous()) {
        int64_t step = 1;
        for (int d = v.ndim - 1; d >= 0; --d) {
            v.strides[d] = step;
            step *= std::max<int64_t>(v.sizes[d], 1);
        }
        return true;
    }
    int d = v.ndim - 1;
    int64_t old_run = 1, new_run = 1;
    int64_t step = input.strides()[input.dim() - 1];
    for (int64_t o = input.dim() - 1; o >= 0; --o) {
        old_run *= input.sizes()[o];
        bool run_ends = o == 0 || (input.sizes()[o - 1] != 1 && input.strides()[o - 1] != old_run * step);
        if (!run_ends) continue;
        while (d >= 0 && (new_run < old_run || v.sizes[d] == 1)) {
            v.strides[d] = new_run * step;
            new_run *= v.sizes[d--];
        }
        if (new_run != old_run) return false;
        if (o > 0) {
            step = input.strides()[o - 1];
            old_run = new_run = 1;
        }
    }
    return d < 0;
}

}  // namespace

bool try_view(const char* op, const Tensor& input, IntList size, ViewSpec& v) {
    v.offset = input.impl()->offset();
    resolve(op, input, size, v);
    return restride(input, v);
}

ViewSpec view(const Tensor& input, IntList size) {
    ViewSpec v;
    RL_CHECK(try_view("view", input, size, v), throw_runtime,
             "view(size): shape %s with strides %s cannot be seen as %s without a copy\nhint: use reshape()",
             to_string(input.sizes()).c_str(), to_string(input.strides()).c_str(), to_string(size).c_str());
    return v;
}

}  // namespace rushlight::views
