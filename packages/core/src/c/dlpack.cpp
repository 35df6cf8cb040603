// DLPack for C.
#include "tensor/dlpack.h"

#include "rushlight/c_support.h"

using namespace rushlight;
using namespace rushlight::c;

namespace {

template <class M>
void release(void* managed, void*, size_t) {
    auto* array = static_cast<M*>(managed);
    if (array->deleter) array->deleter(array);
}

// Returns a tensor whose memory may be shared with another library.
Tensor shareable(const rl_tensor* tensor, const char* function) {
    Tensor t = tensor_of(tensor, function, "tensor");
    RL_CHECK(!t.requires_grad(), throw_buffer,
             "%s(tensor): the tensor requires grad, and writes by other libraries cannot be recorded\n"
             "hint: call the operator 'detach' first",
             function);
    return t;
}

}  // namespace

extern "C" {

RL_API rl_status rl_tensor_from_dlpack(struct DLManagedTensorVersioned* array, rl_tensor** result) {
    empty(result);
    return caught([&] {
        constexpr const char* kName = "rl_tensor_from_dlpack(array)";
        require(array, "rl_tensor_from_dlpack", "array");
        auto* managed = reinterpret_cast<dlpack::ManagedVersioned*>(array);
        // In another major version, only the version and the deleter are at known positions.
        if (managed->version.major != dlpack::kVersion.major) {
            const dlpack::Version version = managed->version;
            release<dlpack::ManagedVersioned>(managed, nullptr, 0);
            throw_buffer("%s: the array has version %u.%u of DLPack, but this library reads %u.x", kName,
                         version.major, version.minor, dlpack::kVersion.major);
        }
        Tensor made = dlpack::tensor_over(managed->array, release<dlpack::ManagedVersioned>, managed,
                                          managed->flags & dlpack::kReadOnly, kName);
        require_one_copy();
        require(result, "rl_tensor_from_dlpack", "result");
        *result = handle_of(std::move(made));
    });
}

RL_API rl_status rl_tensor_to_dlpack(rl_tensor* tensor, struct DLManagedTensorVersioned** result) {
    empty(result);
    return guarded([&] {
        require(result, "rl_tensor_to_dlpack", "result");
        const Tensor t = shareable(tensor, "rl_tensor_to_dlpack");
        *result = reinterpret_cast<DLManagedTensorVersioned*>(
            dlpack::share_versioned(t, "rl_tensor_to_dlpack(tensor)"));
    });
}

RL_API rl_status rl_tensor_from_dlpack_unversioned(struct DLManagedTensor* array, rl_tensor** result) {
    empty(result);
    return caught([&] {
        require(array, "rl_tensor_from_dlpack_unversioned", "array");
        auto* managed = reinterpret_cast<dlpack::Managed*>(array);
        Tensor made = dlpack::tensor_over(managed->array, release<dlpack::Managed>, managed, false,
                                          "rl_tensor_from_dlpack_unversioned(array)");
        require_one_copy();
        require(result, "rl_tensor_from_dlpack_unversioned", "result");
        *result = handle_of(std::move(made));
    });
}

RL_API rl_status rl_tensor_to_dlpack_unversioned(rl_tensor* tensor, struct DLManagedTensor** result) {
    empty(result);
    return guarded([&] {
        constexpr const char* kName = "rl_tensor_to_dlpack_unversioned";
        require(result, kName, "result");
        const Tensor t = shareable(tensor, kName);
        RL_CHECK(!t.impl()->storage()->read_only(), throw_buffer,
                 "%s(tensor): the memory is read-only, which DLPack before version 1.0 cannot express\n"
                 "hint: call rl_tensor_to_dlpack, or export a clone of the tensor",
                 kName);
        *result =
            reinterpret_cast<DLManagedTensor*>(dlpack::share(t, "rl_tensor_to_dlpack_unversioned(tensor)"));
    });
}

}  // extern "C"
