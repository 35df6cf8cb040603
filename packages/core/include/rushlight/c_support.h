// Helpers for the C functions of rushlight's libraries: they convert exceptions to statuses, and tensors to handles.
#pragma once

#include <type_traits>

#include "rushlight/rushlight.h"
#include "rushlight/tensor.h"

namespace rushlight::c {

/// Called in a catch block: stores the current exception as this thread's last failure, and returns its status.
[[gnu::cold]] RL_API rl_status failure() noexcept;
/// Raises RuntimeError in a process that has loaded another copy of librushlight.so.
RL_API void require_one_copy();

/// Calls `body`, and returns RL_OK or the status for the exception that it throws.
template <class Body>
rl_status caught(Body&& body) noexcept {
    try {
        body();
        return RL_OK;
    } catch (...) { return failure(); }
}
/// Runs the body of a C function.
template <class Body>
rl_status guarded(Body&& body) noexcept {
    return caught([&] {
        require_one_copy();
        body();
    });
}

/// Sets results to null or zero. Null pointers are skipped. A C function calls this before anything can fail.
template <class... T>
void empty(T*... results) noexcept {
    ((results ? static_cast<void>(*results = T{}) : void()), ...);
}
/// Sets all fields of structs that begin with their size to null or zero, except the size. Null pointers and structs that
/// are shorter than this library's are skipped.
template <class... T>
void empty_sized(T*... structs) noexcept {
    const auto one = [](auto* s) {
        using Struct = std::remove_pointer_t<decltype(s)>;
        if (!s || s->struct_size < sizeof(Struct)) return;
        const size_t size = s->struct_size;
        *s = Struct{};
        s->struct_size = size;
    };
    (one(structs), ...);
}

/// Raises ValueError if a pointer is null.
inline void require(const void* pointer, const char* function, const char* argument) {
    RL_CHECK(pointer, throw_value, "%s(%s): must not be null", function, argument);
}

// Note [Handles]
// An rl_tensor* is a TensorImpl* that owns a reference. So a handle needs no additional memory.

/// Returns a handle that takes over the reference that `tensor` holds; null for an undefined tensor.
inline rl_tensor* handle_of(Tensor tensor) { return reinterpret_cast<rl_tensor*>(tensor.release()); }
/// Returns the tensor of a handle, or an undefined tensor if the handle is null.
inline Tensor optional_tensor(const rl_tensor* handle) {
    return Tensor::share(reinterpret_cast<TensorImpl*>(const_cast<rl_tensor*>(handle)));
}
inline Tensor tensor_of(const rl_tensor* handle, const char* function, const char* argument) {
    require(handle, function, argument);
    return optional_tensor(handle);
}

/// Returns a tensor over the memory of `array`. `where` names the array in errors. If this function raises an error, it
/// has called the array's release function, unless `array` is shorter than this library's rl_array.
RL_API Tensor tensor_over(const rl_array& array, const char* where);
/// Raises ValueError if `array` is shorter than this library's rl_array.
RL_API void check_size(const rl_array& array, const char* where);
/// Fills in `array` with the address, sizes, strides and dtype of a tensor. The tensor's memory is kept until the
/// array's release function is called.
RL_API void describe_memory(const Tensor& tensor, rl_array& array, const char* where);

}  // namespace rushlight::c
