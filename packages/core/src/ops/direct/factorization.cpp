#include <numeric>

#include "bodies/factorization.h"
#include "ops/copying.h"
#include "ops/direct/lines.h"

namespace rushlight::direct {

Tensor _pivots_to_order(const Tensor& pivots, int64_t rows) {
    host_only("lu_unpack", pivots);
    std::vector<int64_t> sizes = pivots.shape();
    const int64_t k = sizes.back();
    sizes.back() = rows;
    Tensor order = make_tensor(sizes, DType::Int64, pivots.device());
    if (order.device().type == DeviceType::Meta || order.numel() == 0) return order;
    Tensor own = make_tensor(pivots.sizes(), DType::Int32);
    copy_into(own, pivots);
    const auto* exchanged = own.data<int32_t>();
    auto* places = order.data<int64_t>();
    for (int64_t b = 0; b < order.numel() / rows; ++b, places += rows, exchanged += k) {
        std::iota(places, places + rows, int64_t{0});
        for (int64_t i = 0; i < k; ++i) {
            RL_CHECK(exchanged[i] >= 1 && exchanged[i] <= rows, throw_runtime,
                     "lu_unpack(LU_pivots): must be between 1 and the %lld rows, found %d", (long long)rows,
                     exchanged[i]);
            std::swap(places[i], places[exchanged[i] - 1]);
        }
    }
    return order;
}

}  // namespace rushlight::direct
