// Views of the same memory with another dtype.
#include "bodies/reshape.h"

#include <algorithm>

#include "ops/copying.h"
#include "rushlight/regroup.h"

namespace rushlight::storage {
namespace {

// Kernels require that bools are stored as 0 or 1.
void check_truths(const Tensor& input) {
    if (input.device().type != DeviceType::CPU || input.numel() == 0) return;
    Tensor dense = input;
    if (!input.is_contiguous()) {
        dense = make_tensor(input.sizes(), input.dtype());
        copy_into(dense, input);
    }
    const auto* bytes = dense.data<uint8_t>();
    uint8_t all = 0;
    for (size_t i = 0; i < static_cast<size_t>(dense.numel()) * itemsize(dense.dtype()); ++i) all |= bytes[i];
    RL_CHECK(all <= 1, throw_runtime,
             "view(dtype): a tensor of dtype %s with bytes other than 0 and 1 cannot be viewed as bool\n"
             "hint: compare the tensor with 0 instead",
             name(input.dtype()));
}

}  // namespace

// Returns the memory of `input` as elements of another type. Autograd describes views by strides in elements, which is not
// possible here, and the values are not a differentiable function of the input. Therefore the result is not part of a
// graph, like the result of detach().
Tensor view_dtype(const Tensor& input, DType dtype) {
    Tensor out = make_alias(input);
    auto from = static_cast<int64_t>(itemsize(input.dtype())), to = static_cast<int64_t>(itemsize(dtype));
    std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
    std::vector<int64_t> strides(input.strides().begin(), input.strides().end());
    int64_t offset = input.impl()->offset();
    if (from != to) {
        const char *old_name = name(input.dtype()), *new_name = name(dtype);
        RL_CHECK(input.dim() > 0, throw_runtime,
                 "view(dtype): a 0-d tensor of %s cannot be viewed as %s, whose elements have another size\n"
                 "hint: give it a dimension with unsqueeze(0)",
                 old_name, new_name);
        RL_CHECK(
            strides.back() == 1 || sizes.back() == 1 || input.numel() == 0, throw_runtime,
            "view(dtype): a tensor of dtype %s and strides %s cannot be viewed as %s: the last dimension "
            "must be contiguous\n"
            "hint: use contiguous() first",
            old_name, to_string(input.strides()).c_str(), new_name);
        const bool empty = input.numel() == 0;  // then no element is read, and only the last size must fit
        const bool fits =
            sizes.back() * from % to == 0 && (empty || can_regroup(input, std::max<int64_t>(1, to / from)));
        RL_CHECK(
            fits, throw_runtime,
            "view(dtype): a tensor of dtype %s, shape %s, strides %s and offset %lld cannot be viewed as %s: "
            "the last size, the offset and all strides must be divisible by %lld",
            old_name, to_string(input.sizes()).c_str(), to_string(input.strides()).c_str(),
            (long long)input.impl()->offset(), new_name, (long long)(to / from));
        // Converts to bytes, and then to elements of the new size.
        auto convert = [&](int64_t& value) { value = value * from / to; };
        convert(sizes.back());
        convert(offset);
        std::for_each(strides.begin(), strides.end() - 1, convert);
        strides.back() = 1;
    }
    if (dtype == DType::Bool && input.dtype() != DType::Bool) check_truths(input);
    out.impl()->assign(Ref<Storage>::share(input.impl()->storage()), sizes, strides, offset, dtype);
    return out;
}

}  // namespace rushlight::storage
