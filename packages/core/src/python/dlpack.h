// The structures of DLPack 1.1 (https://dmlc.github.io/dlpack/latest/c_api.html), in which array libraries pass memory to
// each other. Their layout is fixed by the standard.
#pragma once

#include <cstdint>

namespace rushlight::python::dlpack {

enum DeviceCode : int32_t { kCPU = 1, kCUDA = 2, kCUDAHost = 3 };
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };

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

struct Managed {  // DLManagedTensor, of consumers that know no version
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

// Names of the capsules, before and after the memory was taken out.
inline constexpr const char* kCapsule = "dltensor";
inline constexpr const char* kUsedCapsule = "used_dltensor";
inline constexpr const char* kVersionedCapsule = "dltensor_versioned";
inline constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

}  // namespace rushlight::python::dlpack
