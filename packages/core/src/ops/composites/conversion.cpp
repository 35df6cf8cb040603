#include "bodies/conversion.h"
#include "ops/broadcasting.h"
#include "ops/copying.h"
#include "ops/memory_format.h"
#include "rushlight/backend.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/all.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/isclose.h"

namespace rushlight::composites {
namespace {

using Format = std::optional<std::string_view>;

Tensor convert(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device, bool copy,
               const Format& format, bool non_blocking = false) {
    MemoryFormat wanted = memory_format("to", format);
    DType t = dtype.value_or(input.dtype());
    Device d = device ? resolve(*device) : input.device();
    Tensor result =
        copy || t != input.dtype() || d != input.device() ? ops::_to_copy(input, t, d, non_blocking) : input;
    // A result of some shapes is in both formats. Its strides decide the format of results that are computed from it, so
    // they must be the strides of `wanted`.
    const bool fits =
        wanted == MemoryFormat::Preserve || (has_format(result, wanted) && format_of(result) == wanted);
    return fits ? result : ops::clone(result, format);
}

// Returns the only element of a bool tensor.
bool truth(const Tensor& t) {
    require_values("equal(), allclose()", t);
    if (t.device().type == DeviceType::CPU) return *t.data<bool>();
    RL_CHECK(t.device().type != DeviceType::Meta, throw_not_implemented,
             "the result depends on values, which a meta tensor does not have");
    Tensor host = make_tensor({}, DType::Bool);
    copy_into(host, t);
    return *host.data<bool>();
}

}  // namespace

Tensor to(const Tensor& input, std::optional<Device> device, std::optional<DType> dtype, bool non_blocking,
          bool copy, Format memory_format) {
    return convert(input, dtype, device, copy, memory_format, non_blocking);
}
Tensor to_dtype(const Tensor& input, DType dtype, bool, bool copy, Format memory_format) {
    return convert(input, dtype, std::nullopt, copy, memory_format);
}
Tensor to_other(const Tensor& input, const Tensor& other, bool non_blocking, bool copy,
                Format memory_format) {
    return convert(input, other.dtype(), other.device(), copy, memory_format, non_blocking);
}
Tensor type_as(const Tensor& input, const Tensor& other) {
    return convert(input, other.dtype(), other.device(), false, std::nullopt);
}
Tensor cpu(const Tensor& input, Format memory_format) {
    return convert(input, std::nullopt, Device{}, false, memory_format);
}
Tensor cuda(const Tensor& input, std::optional<Device> device, bool non_blocking, Format memory_format) {
    return convert(input, std::nullopt, device.value_or(Device{DeviceType::CUDA}), false, memory_format,
                   non_blocking);
}

#define RL_CONVERSION(name, dtype)                                               \
    Tensor name(const Tensor& input, Format memory_format) {                     \
        return convert(input, DType::dtype, std::nullopt, false, memory_format); \
    }
RL_CONVERSION(float_, Float32)
RL_CONVERSION(double_, Float64)
RL_CONVERSION(cfloat, Complex64)
RL_CONVERSION(cdouble, Complex128)
RL_CONVERSION(half, Float16)
RL_CONVERSION(bfloat16, BFloat16)
RL_CONVERSION(long_, Int64)
RL_CONVERSION(int_, Int32)
RL_CONVERSION(short_, Int16)
RL_CONVERSION(char_, Int8)
RL_CONVERSION(byte, UInt8)
RL_CONVERSION(bool_, Bool)
#undef RL_CONVERSION

bool equal(const Tensor& input, const Tensor& other) {
    if (!std::equal(input.sizes().begin(), input.sizes().end(), other.sizes().begin(), other.sizes().end()))
        return false;
    return truth(ops::all(ops::eq(input, other)));
}
bool allclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan) {
    return truth(ops::all(ops::isclose(input, other, rtol, atol, equal_nan)));
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
    std::vector<int64_t> shape;
    for (const Tensor& t : tensors)
        shape = broadcast_shapes("broadcast_tensors", "tensors", shape, "next", t.sizes());
    std::vector<Tensor> result;
    for (const Tensor& t : tensors) result.push_back(ops::expand(t, shape, false));
    return result;
}

}  // namespace rushlight::composites
