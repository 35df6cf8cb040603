#include "bodies/softmax.h"
#include "rushlight/ops/_log_softmax.h"
#include "rushlight/ops/_softmax.h"
#include "rushlight/ops/_to_copy.h"

namespace rushlight::composites {

Tensor softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    if (!dtype || *dtype == input.dtype()) return ops::_softmax(input, dim);
    return ops::_softmax(ops::_to_copy(input, dtype, std::nullopt), dim);
}

Tensor log_softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    if (!dtype || *dtype == input.dtype()) return ops::_log_softmax(input, dim);
    return ops::_log_softmax(ops::_to_copy(input, dtype, std::nullopt), dim);
}

}  // namespace rushlight::composites
