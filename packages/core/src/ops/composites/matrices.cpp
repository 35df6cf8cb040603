#include "ops/matrices.h"
#include "ops/host_values.h"
#include "rushlight/batched.h"

namespace rushlight {

Tensor expand_batch(const Tensor& t, IntList batch) {
    IntList own = batch_of(t);
    if (std::equal(own.begin(), own.end(), batch.begin(), batch.end())) return t;
    std::vector<int64_t> sizes(batch.begin(), batch.end());
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return ops::expand(t, sizes);
}

void check_info(const char* op, const Tensor& info, const char* format) {
    if (info.device().type == DeviceType::Meta) return;
    require_values(op, info);
    const Tensor seen = on_host(info);
    const auto* number = seen.data<int32_t>();
    for (int64_t i = 0; i < info.numel(); ++i) {
        if (number[i] == 0) [[likely]]
            continue;
        std::string text = format;
        if (const size_t at = text.find("%lld"); at != std::string::npos)
            text.replace(at, 4, std::to_string(number[i]));
        if (info.dim() == 0) throw_linalg("%s: the matrix %s", op, text.c_str());
        throw_linalg("%s: matrix %lld of the batch (Batch element %lld) %s", op, (long long)i, (long long)i,
                     text.c_str());
    }
}

}  // namespace rushlight
