#include "ops/views.h"

namespace rushlight {

int wrap_dim(const char* op, int64_t dim, int64_t ndim) {
    int64_t range = ndim ? ndim : 1;
    RL_CHECK(dim >= -range && dim < range, throw_index, "%s(dim): dim must be in [%lld, %lld], got %lld", op,
             (long long)-range, (long long)range - 1, (long long)dim);
    return static_cast<int>(dim < 0 ? dim + range : dim);
}

namespace views {

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

}  // namespace views
}  // namespace rushlight
