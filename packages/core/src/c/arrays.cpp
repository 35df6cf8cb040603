// Conversion of host memory to tensors, and of tensors to host memory.
#include <algorithm>
#include <memory>
#include <vector>

#include "rushlight/batched.h"
#include "rushlight/c_support.h"

namespace rushlight::c {
namespace {

static_assert(RL_COMPLEX128 == static_cast<int>(DType::Complex128) &&
              RL_FLOAT32 == static_cast<int>(DType::Float32) && RL_UINT16 == static_cast<int>(DType::UInt16));

// The caller's memory and its release function. Calls the function unless a storage has taken over the memory.
struct Release {
    void (*function)(void*);
    void* context;
    ~Release() {
        if (function) function(context);
    }
};

}  // namespace

void check_size(const rl_array& array, const char* where) {
    RL_CHECK(array.struct_size >= sizeof(rl_array), throw_value,
             "%s.struct_size: must be at least %zu, got %zu", where, sizeof(rl_array), array.struct_size);
}

Tensor tensor_over(const rl_array& array, const char* where) {
    check_size(array, where);
    Release given{array.release, array.context};
    RL_CHECK(array.dtype >= 0 && array.dtype < kNumDTypes, throw_value,
             "%s.dtype: must be an rl_dtype, got %d", where, int(array.dtype));
    RL_CHECK(array.ndim >= 0 && array.ndim <= kMaxDims, throw_value, "%s.ndim: must be from 0 to %d, got %d",
             where, kMaxDims, int(array.ndim));
    RL_CHECK(array.ndim == 0 || array.sizes, throw_value, "%s.sizes: must not be null", where);
    RL_CHECK((array.flags & ~uint64_t{RL_READ_ONLY}) == 0, throw_value,
             "%s.flags: must be 0 or RL_READ_ONLY, got %#llx", where, (unsigned long long)array.flags);
    const auto n = static_cast<size_t>(array.ndim);
    const auto dtype = static_cast<DType>(array.dtype);
    std::vector<int64_t> sizes(array.sizes, array.sizes + n), strides(n);
    int64_t elements = 1, reach = 1, step = 1;
    for (size_t d = n; d-- > 0;) {
        RL_CHECK(sizes[d] >= 0 && !__builtin_mul_overflow(elements, sizes[d], &elements), throw_value,
                 "%s.sizes: sizes must be at least 0, and their product below 2^63, got %s", where,
                 to_string(sizes).c_str());
        strides[d] = array.strides ? array.strides[d] : step;
        int64_t extent = 0;
        RL_CHECK(strides[d] >= 0 &&
                     !__builtin_mul_overflow(strides[d], std::max<int64_t>(sizes[d] - 1, 0), &extent) &&
                     !__builtin_add_overflow(reach, extent, &reach) &&
                     !__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step),
                 throw_value,
                 "%s.strides: the stride of dimension %zu must be at least 0 and must not overflow 64-bit "
                 "offsets, got %lld",
                 where, d, (long long)strides[d]);
    }
    int64_t nbytes = 0;
    RL_CHECK(!__builtin_mul_overflow(elements ? reach : 0, static_cast<int64_t>(itemsize(dtype)), &nbytes),
             throw_value, "%s.sizes: %s is larger than any memory", where, to_string(sizes).c_str());
    RL_CHECK(elements == 0 || array.data, throw_value, "%s.data: must not be null", where);
    const size_t alignment =
        itemsize(real_dtype(dtype));  // kernels read the parts of a complex number one by one
    RL_CHECK(elements == 0 || reinterpret_cast<uintptr_t>(array.data) % alignment == 0, throw_value,
             "%s.data: memory of %s must be aligned to %zu bytes, got address %p\n"
             "hint: copy the elements to memory that malloc returned",
             where, name(dtype), alignment, array.data);
    auto owner = given.function ? std::make_unique<Release>(given) : nullptr;
    given.function = nullptr;
    const auto end = [](void* context, void*, size_t) { delete static_cast<Release*>(context); };
    Ref<Storage> storage =
        Storage::wrap(elements ? array.data : nullptr, static_cast<size_t>(nbytes), Device{},
                      StorageKind::Foreign, owner ? ReleaseFn(end) : nullptr, owner.get());
    static_cast<void>(owner.release());  // the storage owns it from here on
    if (array.flags & RL_READ_ONLY) storage->set_read_only();
    return make_over(std::move(storage), sizes, strides, 0, dtype);
}

void describe_memory(const Tensor& tensor, rl_array& array, const char* where) {
    require_values(where, tensor);
    RL_CHECK(
        tensor.device().type == DeviceType::CPU, throw_type,
        "%s: must be a tensor on the CPU, got one on %s\nhint: copy it to the CPU with the operator 'to'",
        where, name(tensor.device()).c_str());
    // The sizes and strides are copied, because operators such as transpose_ change those of the tensor.
    struct Holder {
        Ref<Storage> storage;
        std::vector<int64_t> sizes, strides;
        explicit Holder(const Tensor& t)
            : storage(Ref<Storage>::share(t.impl()->storage())),
              sizes(t.sizes().begin(), t.sizes().end()),
              strides(t.strides().begin(), t.strides().end()) {
            storage->add_export();
        }
        ~Holder() { storage->drop_export(); }
    };
    auto holder = std::make_unique<Holder>(tensor);
    array.dtype = static_cast<int32_t>(tensor.dtype());
    array.ndim = static_cast<int32_t>(tensor.dim());
    array.sizes = holder->sizes.data();
    array.strides = holder->strides.data();
    array.data = tensor.data<void>();
    array.flags = tensor.impl()->storage()->read_only() ? RL_READ_ONLY : 0;
    array.release = [](void* context) { delete static_cast<Holder*>(context); };
    array.context = holder.release();
}

}  // namespace rushlight::c

using namespace rushlight;
using namespace rushlight::c;

extern "C" {

RL_API rl_status rl_tensor_from_array(const rl_array* array, rl_tensor** result) {
    empty(result);
    return caught([&] {
        require(array, "rl_tensor_from_array", "array");
        Tensor made = tensor_over(*array, "rl_tensor_from_array(array)");  // owns the memory
        require_one_copy();
        require(result, "rl_tensor_from_array", "result");
        *result = handle_of(std::move(made));
    });
}

RL_API rl_status rl_tensor_to_array(rl_tensor* tensor, rl_array* result) {
    empty_sized(result);
    return guarded([&] {
        require(result, "rl_tensor_to_array", "result");
        check_size(*result, "rl_tensor_to_array(result)");
        describe_memory(tensor_of(tensor, "rl_tensor_to_array", "tensor"), *result,
                        "rl_tensor_to_array(tensor)");
    });
}

RL_API void rl_array_free(rl_array* array) {
    if (!array || array->struct_size < sizeof(rl_array)) return;
    if (array->release) array->release(array->context);
    empty_sized(array);
}

}  // extern "C"
