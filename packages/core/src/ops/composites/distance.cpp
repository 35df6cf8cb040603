// Distances and angles between vectors.
#include <algorithm>
#include <cstring>

#include "bodies/distance.h"
#include "ops/differentiated.h"
#include "rushlight/ops/_cdist_rows.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/broadcast_tensors.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/norm.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/triu_indices.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
    RL_CHECK(is_floating(promote(x1.dtype(), x2.dtype())), throw_runtime,
             "cosine_similarity(x1, x2): needs a floating-point tensor, got %s and %s", name(x1.dtype()),
             name(x2.dtype()));
    RL_CHECK(eps >= 0, throw_runtime, "cosine_similarity(eps): must be at least 0, got %g", eps);
    const Tensor pair[] = {x1, x2};
    auto both = ops::broadcast_tensors(pair);
    const IntList along(&dim, 1);
    auto unit = [&](const Tensor& x) {
        std::optional<DType> dtype;
        if (!is_floating(x.dtype())) dtype = promote(x1.dtype(), x2.dtype());
        return ops::div(x, ops::clamp_min(ops::norm(x, Scalar(2), along, true, dtype), Scalar(eps)));
    };
    return ops::sum(ops::mul(unit(both[0]), unit(both[1])), along);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
    return ops::norm(ops::add(ops::sub(x1, x2), Scalar(eps)), Scalar(p), kInts<-1>, keepdim);
}

Tensor pdist(const Tensor& input, double p) {
    RL_CHECK(input.dim() == 2, throw_runtime, "pdist(input): needs 2 dimensions, got shape %s",
             to_string(input.sizes()).c_str());
    RL_CHECK(is_floating(input.dtype()), throw_runtime, "pdist(input): needs a floating-point tensor, got %s",
             name(input.dtype()));
    RL_CHECK(p >= 0, throw_runtime, "pdist(p): must not be negative, got %g", p);
    const int64_t n = input.size(0);
    RL_CHECK(n <= INT32_MAX, throw_runtime, "pdist(input): shape %s has too many pairs of rows",
             to_string(input.sizes()).c_str());
    const int64_t count = n * (n - 1) / 2;
    // Compares 16 rows at a time with these rows and all later rows. Pairs within the 16 rows are computed twice, and one
    // of the two results is dropped. Computing the full matrix would take twice the memory. See Note [Differentiable
    // composites].
    const bool wide = input.dtype() == DType::Float32 || input.dtype() == DType::Float64;
    if (wide && input.device().type == DeviceType::CPU && !differentiated(input)) {
        constexpr int64_t kRows = 16;
        const Tensor all = ops::unsqueeze(input, 0);
        Tensor made = make_tensor(IntList(&count, 1), input.dtype());
        const auto item = static_cast<int64_t>(itemsize(input.dtype()));
        char* to = static_cast<char*>(made.impl()->data());
        for (int64_t first = 0; first + 1 < n; first += kRows) {
            const int64_t rows = std::min(kRows, n - first), others = n - first;
            const Tensor apart =
                ops::_cdist_rows(ops::narrow(all, 1, first, rows), ops::narrow(all, 1, first, others), p);
            const char* from = static_cast<const char*>(apart.impl()->data());
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t bytes = (others - 1 - r) * item;
                std::memcpy(to, from + (r * others + r + 1) * item, static_cast<size_t>(bytes));
                to += bytes;
            }
        }
        return made;
    }
    const Tensor pairs = ops::triu_indices(n, n, 1, DType::Int64, input.device());
    const auto rows = [&](int64_t which) {
        return ops::index_select(input, 0, ops::select(pairs, 0, which));
    };
    // The maximum of zero elements is undefined, but the distance of empty rows is 0.
    const Scalar order(input.size(1) == 0 ? 1.0 : p);
    return ops::norm(ops::sub(rows(0), rows(1)), order, kInts<-1>, false);
}

}  // namespace rushlight::composites
