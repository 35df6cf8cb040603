// Copies of a tensor in which a view's elements are replaced.
#include <algorithm>

#include "bodies/scatter_views.h"
#include "bodies/slicing.h"
#include "ops/copying.h"
#include "ops/views.h"

namespace rushlight::storage {
namespace {

Tensor replaced(const char* op, const Tensor& input, const Tensor& src, const auto& geometry) {
    Tensor copy = make_tensor(input.sizes(), input.dtype(), input.device());
    Tensor part = take_view(copy, geometry(copy));
    RL_CHECK(std::ranges::equal(part.sizes(), src.sizes()), throw_runtime, "%s(src): needs shape %s, got %s",
             op, to_string(part.sizes()).c_str(), to_string(src.sizes()).c_str());
    copy_into(copy, input);
    copy_into(part, src);
    return copy;
}

}  // namespace

Tensor diagonal_scatter(const Tensor& input, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
    return replaced("diagonal_scatter", input, src,
                    [&](const Tensor& t) { return views::diagonal(t, offset, dim1, dim2); });
}
Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
    return replaced("select_scatter", input, src,
                    [&](const Tensor& t) { return views::select(t, dim, index); });
}
Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
    return replaced("slice_scatter", input, src,
                    [&](const Tensor& t) { return views::slice(t, dim, start, end, step); });
}

}  // namespace rushlight::storage
