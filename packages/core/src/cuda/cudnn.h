// cuDNN's functions and descriptors. The library is loaded when it is first needed.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <utility>

#include "cuda/failure.h"

namespace rushlight::cuda {

/// The functions of cuDNN that the plug-in calls.
struct Cudnn {
    decltype(&cudnnGetVersion) get_version;
    decltype(&cudnnGetCudartVersion) get_cudart_version;
    decltype(&cudnnGetErrorString) describe;
    decltype(&cudnnGetLastErrorString) last_error;
    decltype(&cudnnCreate) create;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnBackendCreateDescriptor) create_descriptor;
    decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
};

/// Returns the library's functions. Loads the library at the first call. Raises Failure if the library is missing or
/// has another version.
const Cudnn& cudnn();

/// Raises Failure for an error that a function of the library returned. `what` says what failed.
void raise(cudnnStatus_t status, const char* what);
inline void check(cudnnStatus_t status, const char* what) {
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
        raise(status, what);
}

/// A handle of the library, which this thread may use until the object is destroyed. Handles are reused.
class CudnnHandle {
  public:
    CudnnHandle(int32_t device, cudaStream_t stream);
    ~CudnnHandle();
    CudnnHandle(const CudnnHandle&) = delete;
    operator cudnnHandle_t() const { return handle_; }

  private:
    int32_t device_;
    cudnnHandle_t handle_;
};

/// A descriptor of the library. Its attributes are set, and then it is finalised, after which it cannot be changed.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(cudnnBackendDescriptorType_t type) {
        check(cudnn().create_descriptor(type, &data_), "creating a descriptor");
    }
    ~Descriptor() {
        if (data_) cudnn().destroy_descriptor(data_);
    }
    Descriptor(Descriptor&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }

    cudnnBackendDescriptor_t get() const { return data_; }

    template <class T>
    void set(cudnnBackendAttributeName_t name, const T& value) {
        set_all(name, type_of(value), 1, &value);
    }
    void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
        set_all(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.data_);
    }
    void set(cudnnBackendAttributeName_t name, const int64_t* values, int64_t count) {
        set_all(name, CUDNN_TYPE_INT64, count, values);
    }
    void set(cudnnBackendAttributeName_t name, void* const* values, int64_t count) {
        set_all(name, CUDNN_TYPE_VOID_PTR, count, values);
    }
    void set_all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                 const void* values) {
        check(cudnn().set(data_, name, type, count, values), "describing a convolution");
    }

    /// Reads up to `most` values to `values`, and returns how many the attribute has.
    int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                 void* values) const {
        int64_t count = 0;
        check(cudnn().get(data_, name, type, most, &count, values), "reading a descriptor");
        return count;
    }
    int64_t read_int(cudnnBackendAttributeName_t name) const {
        int64_t value = 0;
        read(name, CUDNN_TYPE_INT64, 1, &value);
        return value;
    }

    cudnnStatus_t try_finalize() { return cudnn().finalize(data_); }
    void finalize() { check(try_finalize(), "describing a convolution"); }

  private:
    static cudnnBackendAttributeType_t type_of(int64_t) { return CUDNN_TYPE_INT64; }
    static cudnnBackendAttributeType_t type_of(int32_t) { return CUDNN_TYPE_INT32; }
    static cudnnBackendAttributeType_t type_of(float) { return CUDNN_TYPE_FLOAT; }
    static cudnnBackendAttributeType_t type_of(double) { return CUDNN_TYPE_DOUBLE; }
    static cudnnBackendAttributeType_t type_of(void*) { return CUDNN_TYPE_VOID_PTR; }
    static cudnnBackendAttributeType_t type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
    static cudnnBackendAttributeType_t type_of(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
    static cudnnBackendAttributeType_t type_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }

    cudnnBackendDescriptor_t data_ = nullptr;
};

}  // namespace rushlight::cuda
