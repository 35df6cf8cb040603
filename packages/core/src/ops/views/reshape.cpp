#include "bodies/reshape.h"

namespace rushlight::views {
namespace {

// Replaces a size of -1, of which there may be one, by the inferred size.
void resolve(const char* op, const Tensor& input, IntList size, ViewSpec& v) {
    int inferred = -1;
    int64_t known = 1;  // the product of the other sizes, where a size of 0 counts as 1
    bool zero = false;
    for (int64_t n : size) {
        if (n == -1) {
            RL_CHECK(inferred < 0, throw_runtime, "%s(size): only one size may be -1, got %s", op,
                     to_string(size).c_str());
            inferred = v.ndim;
        } else {
            RL_CHECK(n >= 0, throw_runtime, "%s(size): a size cannot be negative, got %s", op,
                     to_string(size).c_str());
            zero |= n == 0;
            RL_CHECK(!__builtin_mul_overflow(known, n ? n : 1, &known), throw_runtime,
                     "%s(size): %s has too many elements", op, to_string(size).c_str());
        }
        v.push(n, 0);
    }
    bool fits = inferred < 0 ? (zero ? 0 : known) == input.numel() : !zero && input.numel() % known == 0;
    RL_CHECK(fits, throw_runtime,
             "%s(size): a tensor of shape %s cannot hold the %lld elements of a tensor of shape %s%s", op,
             to_string(size).c_str(), (long long)input.numel(), to_string(input.sizes()).c_str(),
             inferred >= 0 && zero ? "\nhint: replace -1 by a number, because -1 is ambiguous if another "
                                     "size is 0"
                                   : "");
    if (inferred >= 0) v.sizes[inferred] = input.numel() / known;
}

// Computes strides of the new sizes over the same elements. Returns false if the elements would have to be copied. From the
// last dimension on, groups of old dimensions that are contiguous to each other are matched with groups of new dimensions.
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
    RL_CHECK(
        try_view("view", input, size, v), throw_runtime,
        "view(size): shape %s with strides %s cannot be viewed as %s without a copy\nhint: use reshape()",
        to_string(input.sizes()).c_str(), to_string(input.strides()).c_str(), to_string(size).c_str());
    return v;
}

ViewSpec view_as(const Tensor& input, const Tensor& other) {
    ViewSpec v;
    if (input.dim() == other.dim() &&
        std::equal(input.sizes().begin(), input.sizes().end(), other.sizes().begin()))
        return ViewSpec(input);
    return view(input, other.sizes());
}

ViewSpec squeeze(const Tensor& input) {
    ViewSpec v(input);
    for (int d = v.ndim - 1; d >= 0; --d)
        if (v.sizes[d] == 1) v.remove(d);
    return v;
}

ViewSpec squeeze_dim(const Tensor& input, IntList dim) {
    ViewSpec v(input);
    uint64_t named = 0;
    for (int64_t given : dim) {
        const int d = wrap_dim("squeeze", given, input.dim());
        RL_CHECK(!(named >> d & 1), throw_runtime, "squeeze(dim): dimension %d is listed twice in %s", d,
                 to_string(dim).c_str());
        named |= uint64_t{1} << d;
    }
    for (int d = v.ndim - 1; d >= 0; --d)
        if ((named >> d & 1) && v.sizes[d] == 1) v.remove(d);
    return v;
}

ViewSpec unsqueeze(const Tensor& input, int64_t dim) {
    int d = wrap_dim("unsqueeze", dim, input.dim() + 1);
    ViewSpec v(input);
    v.insert(d, 1, d < input.dim() ? input.sizes()[d] * input.strides()[d] : 1);
    return v;
}

ViewSpec expand(const Tensor& input, IntList size, bool) {
    int lead = static_cast<int>(size.size()) - static_cast<int>(input.dim());
    RL_CHECK(lead >= 0, throw_runtime, "expand(size): %s has fewer dimensions than shape %s",
             to_string(size).c_str(), to_string(input.sizes()).c_str());
    ViewSpec v;
    v.offset = input.impl()->offset();
    for (int d = 0; d < static_cast<int>(size.size()); ++d) {
        int64_t want = size[d];
        int64_t have = d < lead ? 1 : input.sizes()[d - lead];
        if (want == -1 && d >= lead) want = have;
        RL_CHECK(
            want >= 0 && (want == have || have == 1), throw_runtime,
            "expand(size): shape %s cannot be expanded to %s: dimension %d has size %lld%s",
            to_string(input.sizes()).c_str(), to_string(size).c_str(), d, (long long)have,
            want == -1 ? "\nhint: replace -1 by a number, because a new dimension has no size to keep" : "");
        v.push(want, d < lead || want != have ? 0 : input.strides()[d - lead]);
    }
    return v;
}
ViewSpec expand_as(const Tensor& input, const Tensor& other) { return expand(input, other.sizes(), false); }
ViewSpec broadcast_to(const Tensor& input, IntList size) { return expand(input, size, false); }

ViewSpec as_strided(const Tensor& input, IntList size, IntList stride,
                    std::optional<int64_t> storage_offset) {
    RL_CHECK(size.size() == stride.size(), throw_runtime,
             "as_strided(size, stride): %s and %s must have the same length", to_string(size).c_str(),
             to_string(stride).c_str());
    ViewSpec v;
    v.offset = storage_offset.value_or(input.impl()->offset());
    RL_CHECK(v.offset >= 0, throw_runtime, "as_strided(storage_offset): must not be negative, got %lld",
             (long long)v.offset);
    int64_t last = v.offset;
    bool empty = false, overflow = false;
    for (size_t d = 0; d < size.size(); ++d) {
        RL_CHECK(size[d] >= 0 && stride[d] >= 0, throw_runtime,
                 "as_strided(size, stride): must not be negative, got %s and %s", to_string(size).c_str(),
                 to_string(stride).c_str());
        v.push(size[d], stride[d]);
        empty |= size[d] == 0;
        int64_t step = 0;
        if (size[d] > 0) overflow |= __builtin_mul_overflow(size[d] - 1, stride[d], &step);
        overflow |= __builtin_add_overflow(last, step, &last);
    }
    auto have = static_cast<int64_t>(input.impl()->storage()->nbytes() / itemsize(input.dtype()));
    RL_CHECK(
        empty || (!overflow && last < have), throw_runtime,
        "as_strided(size, stride): %s with strides %s at offset %lld reaches beyond the storage of %lld elements",
        to_string(size).c_str(), to_string(stride).c_str(), (long long)v.offset, (long long)have);
    return v;
}

}  // namespace rushlight::views
