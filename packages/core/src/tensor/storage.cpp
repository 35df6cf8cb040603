#include "rushlight/storage.h"

#include <algorithm>
#include <cstring>

#include "runtime/hooks.h"
#include "rushlight/allocator.h"
#include "rushlight/backend.h"
#include "rushlight/error.h"
#include "tensor/object_pool.h"

namespace rushlight {
namespace {
using Pool = ObjectPool<sizeof(Storage), alignof(Storage)>;

// The objects that a moved storage keeps alive.
struct Moved {
    Ref<Storage> target;
    // The memory from before the move, if its address is still exported.
    Ref<Storage> before;
};
}  // namespace

Ref<Storage> Storage::allocate(size_t nbytes, Device device) {
    void* data = nullptr;
    ReleaseFn release = nullptr;
    void* context = nullptr;
    if (device.type == DeviceType::CPU) {
        Allocation made = rushlight::allocate(nbytes);
        data = made.data;
        release = made.release;
        context = made.self;
    } else if (device.type != DeviceType::Meta) {
        data = backend_allocate(device, nbytes, &release, &context);
    }
    auto* storage = new (Pool::allocate()) Storage;
    storage->data_ = data;
    storage->nbytes_ = nbytes;
    storage->device_ = device;
    storage->release_ = release;
    storage->context_ = context;
    if (detail::memory_is_observed()) detail::report_allocated(data, nbytes, device);
    return Ref<Storage>::adopt(storage);
}

Ref<Storage> Storage::wrap(void* data, size_t nbytes, Device device, StorageKind kind, ReleaseFn release,
                           void* context) {
    auto* storage = new (Pool::allocate()) Storage;
    storage->data_ = data;
    storage->nbytes_ = nbytes;
    storage->device_ = device;
    storage->kind_ = kind;
    storage->release_ = release;
    storage->context_ = context;
    return Ref<Storage>::adopt(storage);
}

void Storage::destroy(Storage* storage) {
    if (detail::memory_is_observed() && storage->kind_ == StorageKind::Cached)
        detail::report_released(storage->data_, storage->nbytes_, storage->device_);
    if (storage->release_) {
        storage->release_(storage->context_, storage->data_, storage->nbytes_);
    } else if (storage->kind_ == StorageKind::Cached && storage->device_.type == DeviceType::CPU) {
        cpu_release(storage->data_, storage->nbytes_);
    }
    storage->~Storage();
    Pool::release(storage);
}

void Storage::move_to(Ref<Storage> target, bool is_copied) {
    RL_CHECK(device_.type == DeviceType::CPU && target->device_.type == DeviceType::CPU, throw_runtime,
             "move_to: both storages must be on the CPU, got %s and %s", name(device_).c_str(),
             name(target->device_).c_str());
    RL_CHECK(target->nbytes_ >= nbytes_, throw_value, "move_to: the target has %zu bytes, but %zu are needed",
             target->nbytes_, nbytes_);
    RL_CHECK(target.get() != this, throw_value, "move_to: a storage cannot be moved to itself");
    if (nbytes_ && !is_copied) std::memcpy(target->data_, data_, nbytes_);
    auto* moved = new Moved{target, nullptr};
    Ref<Storage> before = wrap(
        target->data_, nbytes_, device_, target->kind_,
        [](void* context, void*, size_t) { delete static_cast<Moved*>(context); }, moved);
    std::swap(data_, before->data_);
    std::swap(kind_, before->kind_);
    std::swap(release_, before->release_);
    std::swap(context_, before->context_);
    if (exports() != 0) moved->before = std::move(before);
}

static const char* described(StorageKind kind) {
    switch (kind) {
        case StorageKind::Pinned: return "is pinned";
        case StorageKind::Shared: return "is shared with other processes";
        case StorageKind::Mapped: return "belongs to a file";
        default: return "belongs to another library, such as NumPy";
    }
}

void Storage::resize(const char* what, size_t nbytes) {
    RL_CHECK(
        kind_ == StorageKind::Cached, throw_runtime,
        "%s: %zu bytes are needed, but the tensor's memory of %zu bytes is not resizable, because it %s\n"
        "hint: clone() the tensor first",
        what, nbytes, nbytes_, described(kind_));
    RL_CHECK(exports() == 0, throw_runtime,
             "%s: the tensor's memory is not resizable, because %u NumPy arrays, buffers or DLPack capsules "
             "refer to it\n"
             "hint: clone() the tensor first, or delete these objects",
             what, exports());
    if (device_.type != DeviceType::Meta) {
        // Takes the new memory from the allocator in use, and returns the old memory to its own allocator.
        Ref<Storage> other = allocate(nbytes, device_);
        if (size_t common = std::min(nbytes, nbytes_)) {
            if (device_.type == DeviceType::CPU) std::memcpy(other->data_, data_, common);
            else {
                record_current_use(*this);
                backend_copy_bytes(CopyKind::DeviceToDevice, device_, other->data_, data_, common);
            }
        }
        std::swap(data_, other->data_);
        std::swap(release_, other->release_);
        std::swap(context_, other->context_);
        std::swap(nbytes_, other->nbytes_);
    }
    nbytes_ = nbytes;
}

}  // namespace rushlight
