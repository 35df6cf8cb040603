// Replacement and growth of a tensor's memory.
#include <algorithm>

#include "bodies/reshape.h"
#include "bodies/resizing.h"
#include "ops/memory_format.h"
#include "ops/outputs.h"
#include "ops/views.h"

namespace rushlight::storage {
namespace {

// Nodes of a graph would read saved tensors with the new geometry, and a replacement of the memory has no derivative.
void check_unrecorded(const char* op, const Tensor& t) {
    RL_CHECK(
        !(t.impl()->stages() & bit(Stage::Autograd)), throw_runtime,
        "%s: not possible for a tensor that requires grad, because changes of memory have no derivative\n"
        "hint: use detach() first",
        op);
}

const Tensor& placed(const char* op, const Tensor& input, Ref<Storage> storage, IntList sizes,
                     IntList strides, int64_t offset) {
    TensorImpl* impl = input.impl();
    if (impl->use_count() > 1) begin_write(op, input);
    if (storage.get() != impl->storage()) impl->leave_root();
    impl->assign(std::move(storage), sizes, strides, offset, input.dtype());
    return input;
}

Tensor resized(const Tensor& input, IntList size, MemoryFormat wanted) {
    check_format("resize_", size, wanted);
    // Creates a tensor without memory, to check the sizes and to compute the strides.
    const Tensor plan = make_in_format(size, input.dtype(), Device{DeviceType::Meta}, wanted);
    Storage* storage = input.impl()->storage();
    const int64_t offset = input.impl()->offset();
    int64_t bytes;
    RL_CHECK(!__builtin_add_overflow(offset, plan.numel(), &bytes) &&
                 !__builtin_mul_overflow(bytes, static_cast<int64_t>(itemsize(input.dtype())), &bytes),
             throw_runtime, "resize_(size): the number of bytes of shape %s exceeds a 64-bit integer",
             to_string(size).c_str());
    if (plan.numel() > 0 && static_cast<size_t>(bytes) > storage->nbytes()) {
        check_writable("resize_", input);
        storage->resize("resize_(input)", static_cast<size_t>(bytes));
    }
    return placed("resize_", input, Ref<Storage>::share(storage), plan.sizes(), plan.strides(), offset);
}

}  // namespace

Tensor resize_(const Tensor& input, IntList size, std::optional<std::string_view> format) {
    check_unrecorded("resize_", input);
    const MemoryFormat wanted = format ? memory_format("resize_", format) : MemoryFormat::Contiguous;
    RL_CHECK(
        wanted != MemoryFormat::Preserve, throw_runtime,
        "resize_(memory_format): must not be preserve_format, because new sizes have no strides to keep");
    if (!format && std::ranges::equal(size, input.sizes())) return input;  // keeps its strides
    return resized(input, size, wanted);
}

Tensor resize_as_(const Tensor& input, const Tensor& the_template, std::optional<std::string_view> format) {
    check_unrecorded("resize_as_", input);
    if (!format) return resize_(input, the_template.sizes(), std::nullopt);
    const MemoryFormat wanted = memory_format("resize_as_", format);
    return resized(input, the_template.sizes(),
                   wanted == MemoryFormat::Preserve ? format_of(the_template) : wanted);
}

Tensor set_(const Tensor& input) {
    check_unrecorded("set_", input);
    return placed("set_", input, Storage::allocate(0, input.device()), kInts<0>, kInts<1>, 0);
}

Tensor set__tensor(const Tensor& input, const Tensor& source) {
    return set__strided(input, source, source.impl()->offset(), source.sizes(), source.strides());
}

Tensor set__strided(const Tensor& input, const Tensor& source, int64_t storage_offset, IntList size,
                    IntList stride) {
    check_unrecorded("set_", input);
    check_unrecorded("set_", source);
    RL_CHECK(source.dtype() == input.dtype() && source.device() == input.device(), throw_runtime,
             "set_(source): must have the tensor's dtype and device, %s on %s, got %s on %s",
             name(input.dtype()), name(input.device()).c_str(), name(source.dtype()),
             name(source.device()).c_str());
    const bool dense = stride.empty() && !size.empty();
    const Tensor plan = dense ? make_tensor(size, input.dtype(), Device{DeviceType::Meta}) : Tensor();
    const ViewSpec spec = views::as_strided(source, size, dense ? plan.strides() : stride, storage_offset);
    const auto n = static_cast<size_t>(spec.ndim);
    return placed("set_", input, Ref<Storage>::share(source.impl()->storage()), IntList(spec.sizes, n),
                  IntList(spec.strides, n), spec.offset);
}

}  // namespace rushlight::storage
