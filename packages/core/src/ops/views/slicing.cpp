#include "bodies/slicing.h"

namespace rushlight {

int wrap_dim(const char* op, int64_t dim, int64_t ndim) {
    int64_t range = ndim ? ndim : 1;
    RL_CHECK(dim >= -range && dim < range, throw_index, "%s(dim): dim must be in [%lld, %lld], got %lld", op,
             (long long)-range, (long long)range - 1, (long long)dim);
    return static_cast<int>(dim < 0 ? dim + range : dim);
}

namespace views {
namespace {

// A step larger than the size leaves at most one element, whose stride is not used.
int64_t stepped(int64_t stride, int64_t step) {
    int64_t result;
    return __builtin_mul_overflow(stride, step, &result) || result >> 59 ? 1 : result;
}

}  // namespace

ViewSpec select(const Tensor& input, int64_t dim, int64_t index) {
    RL_CHECK(input.dim() > 0, throw_index, "select(): a 0-d tensor has no dimension to select from");
    int d = wrap_dim("select", dim, input.dim());
    int64_t size = input.sizes()[d];
    RL_CHECK(index >= -size && index < size, throw_index,
             "select(index): index %lld is out of range for dimension %d of size %lld", (long long)index, d,
             (long long)size);
    ViewSpec v(input);
    v.offset += (index < 0 ? index + size : index) * v.strides[d];
    v.remove(d);
    return v;
}

ViewSpec slice(const Tensor& input, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
               int64_t step) {
    RL_CHECK(input.dim() > 0, throw_index, "slice(): a 0-d tensor has no dimension to slice");
    int d = wrap_dim("slice", dim, input.dim());
    RL_CHECK(step > 0, throw_value,
             "slice(step): must be positive, got %lld\nhint: use flip() to reverse a dimension",
             (long long)step);
    int64_t size = input.sizes()[d];
    auto clip = [size](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
    int64_t first = clip(start.value_or(0)), last = clip(end.value_or(size));
    ViewSpec v(input);
    v.sizes[d] = last > first ? (last - first - 1) / step + 1 : 0;
    v.offset += first * v.strides[d];
    v.strides[d] = stepped(v.strides[d], step);
    return v;
}

ViewSpec narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
    RL_CHECK(input.dim() > 0, throw_runtime, "narrow(): a 0-d tensor has no dimension to narrow");
    int d = wrap_dim("narrow", dim, input.dim());
    int64_t size = input.sizes()[d];
    RL_CHECK(length >= 0, throw_runtime, "narrow(length): must not be negative, got %lld", (long long)length);
    RL_CHECK(start >= -size && start <= size, throw_index,
             "narrow(start): start %lld is out of range for dimension %d of size %lld", (long long)start, d,
             (long long)size);
    if (start < 0) start += size;
    RL_CHECK(length <= size - start, throw_runtime,
             "narrow(start, length): %lld elements from %lld on exceed dimension %d of size %lld",
             (long long)length, (long long)start, d, (long long)size);
    ViewSpec v(input);
    v.sizes[d] = length;
    v.offset += start * v.strides[d];
    return v;
}

ViewSpec diagonal(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
    int a = wrap_dim("diagonal", dim1, input.dim()), b = wrap_dim("diagonal", dim2, input.dim());
    RL_CHECK(a != b, throw_runtime, "diagonal(dim1, dim2): the dimensions must differ, both are %d", a);
    ViewSpec v(input);
    int64_t rows = v.sizes[a], columns = v.sizes[b], row_step = v.strides[a], column_step = v.strides[b];
    // Clamped first, because the offset can be any integer.
    offset = std::clamp(offset, -rows, columns);
    int64_t length = std::max<int64_t>(
        offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns), 0);
    if (length > 0) v.offset += offset >= 0 ? offset * column_step : -offset * row_step;
    v.remove(std::max(a, b));
    v.remove(std::min(a, b));
    v.push(length, row_step + column_step);
    return v;
}

ViewSpec unfold(const Tensor& input, int64_t dimension, int64_t size, int64_t step) {
    int d = wrap_dim("unfold", dimension, input.dim());
    int64_t available = input.dim() ? input.sizes()[d] : 1;
    RL_CHECK(size >= 0 && size <= available, throw_runtime,
             "unfold(size): must be between 0 and %lld, the size of dimension %d, got %lld",
             (long long)available, d, (long long)size);
    RL_CHECK(step > 0, throw_runtime, "unfold(step): must be positive, got %lld", (long long)step);
    ViewSpec v(input);
    if (input.dim() == 0) {
        v.push(size, 1);
        return v;
    }
    int64_t inner = v.strides[d];
    v.sizes[d] = (available - size) / step + 1;
    v.strides[d] = stepped(inner, step);
    v.push(size, inner);
    return v;
}

}  // namespace views
}  // namespace rushlight
