// The structures of DLPack 1.1 (https://dmlc.github.io/dlpack/latest/c_api.html), by which array libraries share memory
// with each other. Their layout is fixed by the standard.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::dlpack {

enum DeviceCode : int32_t { kCPU = 1, kCUDA = 2, kCUDAHost = 3 };
enum TypeCode : uint8_t {
    kInt = 0,
    kUInt = 1,
    kFloat = 2,
    kBFloat = 4,
    kComplex = 5,
    kBool = 6,
    kFloat8E4M3FN = 10,
    kFloat8E4M3FNUZ = 11,
    kFloat8E5M2 = 12,
    kFloat8E5M2FNUZ = 13,
    kFloat8E8M0FNU = 14
};

struct Device {
    int32_t type;
    int32_t id;
};

struct DataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct Array {  // DLTensor
    void* data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null: row-major
    uint64_t byte_offset;
};

struct Managed {  // DLManagedTensor, for consumers without versions
    Array array;
    void* owner;
    void (*deleter)(Managed*);
};

struct Version {
    uint32_t major, minor;
};
inline constexpr Version kVersion{1, 1};
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

struct ManagedVersioned {  // DLManagedTensorVersioned
    Version version;
    void* owner;
    void (*deleter)(ManagedVersioned*);
    uint64_t flags;
    Array array;
};

/// Returns the device in DLPack's numbering. Raises BufferError for devices that have no number in DLPack.
RL_API Device device_of(rushlight::Device device, const char* op);

/// Exports the memory of a tensor to another library, which may call the deleter on any thread.
RL_API ManagedVersioned* share_versioned(const Tensor& t, const char* op);
RL_API Managed* share(const Tensor& t, const char* op);

/// Returns a tensor over another library's array. `release` is called with `managed` when the tensor's memory is no
/// longer needed, and also if this function raises BufferError.
RL_API Tensor tensor_over(const Array& array, ReleaseFn release, void* managed, bool read_only,
                          const char* op);

}  // namespace rushlight::dlpack
