#include "tensor/dlpack.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "rushlight/backend.h"
#include "rushlight/batched.h"

namespace rushlight::dlpack {
namespace {

DataType to_dlpack(DType t) {
    auto bits = static_cast<uint8_t>(itemsize(t) * 8);
    switch (t) {
        case DType::Bool: return {kBool, 8, 1};
        case DType::BFloat16: return {kBFloat, 16, 1};
        case DType::Float8E4M3FN: return {kFloat8E4M3FN, 8, 1};
        case DType::Float8E4M3FNUZ: return {kFloat8E4M3FNUZ, 8, 1};
        case DType::Float8E5M2: return {kFloat8E5M2, 8, 1};
        case DType::Float8E5M2FNUZ: return {kFloat8E5M2FNUZ, 8, 1};
        case DType::Float8E8M0FNU: return {kFloat8E8M0FNU, 8, 1};
        case DType::UInt8:
        case DType::UInt16:
        case DType::UInt32:
        case DType::UInt64: return {kUInt, bits, 1};
        case DType::Complex64:
        case DType::Complex128: return {kComplex, bits, 1};
        case DType::Float16:
        case DType::Float32:
        case DType::Float64: return {kFloat, bits, 1};
        default: return {kInt, bits, 1};
    }
}

DType dtype_of(DataType t, const char* op) {
    if (t.lanes == 1)
        for (int i = 0; i < kNumDTypes; ++i) {
            DataType known = to_dlpack(static_cast<DType>(i));
            if (known.code == t.code && known.bits == t.bits) return static_cast<DType>(i);
        }
    throw_buffer("%s: no tensor dtype corresponds to type code %d with %d bits and %d lanes", op, int(t.code),
                 int(t.bits), int(t.lanes));
}

}  // namespace

Device device_of(rushlight::Device device, const char* op) {
    if (device.type == DeviceType::CPU) return {kCPU, 0};
    if (device.type == DeviceType::CUDA) return {kCUDA, resolve(device).index};
    throw_buffer("%s: DLPack has no device type for a tensor on %s", op, name(device).c_str());
}

namespace {

// Owns the memory of an exported array. It holds a reference to the storage instead of the tensor, so that it may be
// released on any thread.
template <class M>
struct Export {
    M managed;
    Ref<Storage> storage;
    int64_t dims[];

    static M* make(const Tensor& t, const char* op) {
        require_values(op, t);
        const Device device = device_of(t.device(), op);
        auto n = static_cast<size_t>(t.dim());
        auto* self = static_cast<Export*>(std::malloc(sizeof(Export) + 2 * n * sizeof(int64_t)));
        RL_CHECK(self, throw_out_of_memory, "%s: out of memory", op);
        new (&self->storage) Ref<Storage>(Ref<Storage>::share(t.impl()->storage()));
        self->storage->add_export();
        int64_t step = 1;
        for (size_t d = n; d-- > 0;) {
            self->dims[d] = t.sizes()[d];
            // The stride of a dimension of size 1 has no meaning, but consumers that check for row-major order expect
            // this value.
            self->dims[n + d] = t.sizes()[d] <= 1 ? step : t.strides()[d];
            step *= t.sizes()[d] ? t.sizes()[d] : 1;
        }
        std::memset(&self->managed, 0, sizeof(M));
        self->managed.owner = self;
        self->managed.deleter = [](M* managed) {
            auto* owner = static_cast<Export*>(managed->owner);
            owner->storage->drop_export();
            owner->storage.~Ref<Storage>();
            std::free(owner);
        };
        self->managed.array = {
            t.impl()->data(), device, static_cast<int32_t>(n), to_dlpack(t.dtype()), self->dims,
            self->dims + n,   0};
        return &self->managed;
    }
};

}  // namespace

ManagedVersioned* share_versioned(const Tensor& t, const char* op) {
    ManagedVersioned* managed = Export<ManagedVersioned>::make(t, op);
    managed->version = kVersion;
    managed->flags = t.impl()->storage()->read_only() ? kReadOnly : 0;
    return managed;
}

Managed* share(const Tensor& t, const char* op) { return Export<Managed>::make(t, op); }

Tensor tensor_over(const Array& array, ReleaseFn release, void* managed, bool read_only, const char* op) {
    // From here on the storage releases the memory, even if a later check fails.
    Ref<Storage> owner =
        Storage::wrap(nullptr, 0, rushlight::Device{}, StorageKind::Foreign, release, managed);
    rushlight::Device device;
    if (array.device.type == kCUDA) device = {DeviceType::CUDA, static_cast<int8_t>(array.device.id)};
    else
        RL_CHECK(array.device.type == kCPU || array.device.type == kCUDAHost, throw_buffer,
                 "%s: memory on device (%d, %d) is not supported", op, int(array.device.type),
                 int(array.device.id));
    if (device.type != DeviceType::CPU) {
        require_backend(device.type);
        RL_CHECK(array.device.id >= 0 && array.device.id < device_count(device.type), throw_buffer,
                 "%s: there is no device %d of type cuda", op, int(array.device.id));
    }
    DType dtype = dtype_of(array.dtype, op);
    RL_CHECK(array.ndim >= 0 && array.ndim <= kMaxDims, throw_buffer,
             "%s: a tensor has at most %d dimensions, got %d", op, kMaxDims, int(array.ndim));
    RL_CHECK(array.ndim == 0 || array.shape, throw_buffer,
             "%s: the array has dimensions but its shape is null", op);
    auto n = static_cast<size_t>(array.ndim);
    IntList sizes(array.shape, n);
    int64_t strides[kMaxDims];
    int64_t step = 1, extent = 1;
    bool empty = false;
    for (size_t d = n; d-- > 0;) {
        RL_CHECK(sizes[d] >= 0, throw_buffer, "%s: a dimension cannot be negative: %s", op,
                 to_string(sizes).c_str());
        strides[d] = array.strides ? array.strides[d] : step;
        bool fits = !__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step);
        if (sizes[d] <= 1 && strides[d] < 0) strides[d] = 0;
        RL_CHECK(strides[d] >= 0, throw_buffer,
                 "%s: a stride is negative (%lld), but tensors cannot have negative strides\n"
                 "hint: copy the array in the other library first",
                 op, (long long)strides[d]);
        empty |= sizes[d] == 0;
        int64_t reach = 0;
        fits = fits && !__builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach) &&
               !__builtin_add_overflow(extent, reach, &extent);
        RL_CHECK(fits, throw_buffer, "%s: an array of shape %s is larger than any memory", op,
                 to_string(sizes).c_str());
    }
    RL_CHECK(array.byte_offset <= PTRDIFF_MAX, throw_buffer,
             "%s: the byte offset %llu is larger than any memory", op,
             static_cast<unsigned long long>(array.byte_offset));
    void* data = static_cast<char*>(array.data) + array.byte_offset;
    size_t nbytes = 0;
    RL_CHECK(!__builtin_mul_overflow(empty ? 0 : static_cast<size_t>(extent), itemsize(dtype), &nbytes),
             throw_buffer, "%s: an array of shape %s is larger than any memory", op,
             to_string(sizes).c_str());
    RL_CHECK(nbytes == 0 || array.data, throw_buffer, "%s: the array has elements but its data is null", op);
    // Kernels of the CPU read the parts of a complex number one by one. Kernels of devices read whole elements.
    const size_t alignment = itemsize(device.type == DeviceType::CPU ? real_dtype(dtype) : dtype);
    RL_CHECK(nbytes == 0 || reinterpret_cast<uintptr_t>(data) % alignment == 0, throw_buffer,
             "%s: memory of %s must be aligned to %zu bytes, got address %p\n"
             "hint: copy the array in the other library first",
             op, name(dtype), alignment, data);
    auto storage = Storage::wrap(
        nbytes ? data : nullptr, nbytes, device, StorageKind::Foreign,
        [](void* o, void*, size_t) { Ref<Storage>::adopt(static_cast<Storage*>(o)); }, owner.release());
    if (read_only) storage->set_read_only();
    return make_over(std::move(storage), sizes, IntList(strides, n), 0, dtype);
}

}  // namespace rushlight::dlpack
