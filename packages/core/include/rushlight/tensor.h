// Tensor: a typed, strided view of a storage. The operators are declared in rushlight/ops/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rushlight/device.h"
#include "rushlight/dtype.h"
#include "rushlight/error.h"
#include "rushlight/intrusive.h"
#include "rushlight/kernel.h"
#include "rushlight/list.h"
#include "rushlight/scalar.h"
#include "rushlight/storage.h"

namespace rushlight {

inline constexpr int kMaxDims = 64;
inline constexpr int kInlineDims = 4;

// Note [Key]
// One 64-bit word of each tensor holds the data that dispatch needs: bits 0-15 are the stages that handle its operators,
// 16-23 the dtype, 24-31 the device type, 32-39 the device index, 40-63 the flags below.
using StageMask = uint32_t;
enum class Stage : uint8_t {
    Recorder,  // below Autograd: also receives the operators that derivative formulas call
    Autograd,
    Dual,
    Sparse,
    Float8,  // set for every float8 tensor: Note [Float8 tensors]
    Batch,
    Autocast,
    Tracer,
    Profiler,
    Python,
    Strict
};
inline constexpr int kNumStages = 11;
constexpr StageMask bit(Stage s) { return StageMask{1} << static_cast<int>(s); }

enum class Flag : uint8_t {
    Contiguous = 40,   // row-major without gaps
    Dense,             // some permutation of it is contiguous
    NonLeaf,           // the result of a recorded operator
    // A view that was made while gradients were disabled. Recording an in-place operator on it raises an error.
    DetachedView,
    Inference,  // made in inference mode: must not become part of a graph
    NeedsRetain,  // retain_grad() was called
};
constexpr uint64_t bit(Flag f) { return uint64_t{1} << static_cast<int>(f); }

class TensorImpl;
class Tensor;

/// The sizes, strides and storage offset of a view, in elements.
struct Geometry {
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
};

/// Functions that destroy and traverse the state that a provider (autograd) attaches to tensors.
struct MetaTable {
    void (*destroy)(void* meta);
    // For Python's garbage collector: visits the Python objects to which only `meta` holds references.
    int (*traverse)(void* meta, int (*visit)(void* object, void* argument), void* argument);
    void (*clear)(void* meta);
};
/// Installs the functions of the process's only provider. A second call raises an error.
RL_API void set_meta_table(const MetaTable& table);
/// Returns the functions of the provider, or null if no provider is installed.
RL_API const MetaTable* meta_table_or_null();

/// The functions of the language bindings, which attach a wrapper object to a tensor.
struct WrapperTable {
    /// Called with the last reference to a tensor that owns its wrapper, which the function takes over: Note [Owned
    /// wrappers]. Called on any thread.
    void (*release)(TensorImpl* impl);
};
RL_API void set_wrapper_table(const WrapperTable& table);

class RL_API TensorImpl final : public RefCounted {
  public:
    static void destroy(TensorImpl* impl);

    DType dtype() const { return static_cast<DType>((key_ >> 16) & 0xff); }
    DeviceType device_type() const { return static_cast<DeviceType>((key_ >> 24) & 0xff); }
    Device device() const { return {device_type(), static_cast<int8_t>((key_ >> 32) & 0xff)}; }
    bool has(Flag f) const { return key_ & bit(f); }
    void set(Flag f, bool on = true) { key_ = on ? key_ | bit(f) : key_ & ~bit(f); }
    /// The stages of the tensor and, for a view, also the stages of its root: Note [Views and their root].
    StageMask stages() const { return static_cast<StageMask>((key_ | root_->key_) & 0xffff); }
    StageMask own_stages() const { return static_cast<StageMask>(key_ & 0xffff); }
    void set_stage(Stage s, bool on) { key_ = on ? key_ | bit(s) : key_ & ~uint64_t{bit(s)}; }

    int ndim() const { return ndim_; }
    int64_t numel() const { return numel_; }
    IntList sizes() const { return {geometry_, static_cast<size_t>(ndim_)}; }
    IntList strides() const { return {geometry_ + ndim_, static_cast<size_t>(ndim_)}; }
    int64_t size(int d) const { return geometry_[d]; }
    int64_t stride(int d) const { return geometry_[ndim_ + d]; }
    int64_t offset() const { return offset_; }
    bool contiguous() const { return has(Flag::Contiguous); }
    Geometry geometry() const;

    Storage* storage() const { return storage_; }

    // Note [Versions]
    // A version counter counts the writes to memory. A backward pass compares it with the count at the time when a
    // tensor was saved. Views, detach() and other aliases share the counter of their storage. A tensor that `.data`
    // returned, or to which `.data =` assigned other memory, has a separate counter, which its views share. A write
    // through that tensor does not invalidate values saved from the original tensor, and a write through the original
    // tensor does not invalidate values saved from that tensor.
    uint32_t version() const { return versions_ ? versions_->value() : storage_->version(); }
    /// The site of the last write: Note [Sites].
    Site writer() const { return versions_ ? versions_->writer() : storage_->writer(); }
    void count_write(Site site) {
        if (versions_) [[unlikely]]
            return versions_->bump(site);
        storage_->bump_version();
        storage_->set_writer(site);
    }
    /// Gives this tensor a new version counter with the value `version`. Views and aliases that are made from the
    /// tensor later share this counter.
    void own_version(uint32_t version);
    /// The address of the first element; null for an empty tensor and on the meta device.
    void* data() const {
        char* base = static_cast<char*>(storage_->data());
        return base ? base + offset_ * static_cast<int64_t>(itemsize(dtype())) : nullptr;
    }
    View view() const { return {data(), geometry_, geometry_ + ndim_, numel_, ndim_, dtype(), contiguous()}; }

    // Note [Views and their root]
    // A view stores its root: the tensor that it was taken from, directly or through other views. The root of a tensor
    // that is not a view is the tensor itself. An in-place operator on the root may record a history later. Because the
    // mask combines the stages of the view and of its root, the next operator on the view then enters autograd. There
    // autograd detects that the view's own history is older than the root's.
    TensorImpl* root() const { return root_; }
    bool is_view() const { return root_ != this; }
    /// Detaches a view from its root, for example when the view becomes a leaf.
    void leave_root();

    void* meta() const { return meta_; }
    void set_meta(void* meta) { meta_ = meta; }
    TensorImpl* grad() const { return grad_; }
    void set_grad(Ref<TensorImpl> grad);

    // Note [Owned wrappers]
    // Only the bindings use the wrapper slot, under their lock. `owned` means that the tensor keeps its wrapper alive;
    // otherwise the wrapper keeps the tensor alive. An owned wrapper's pointer to the tensor does not count as a
    // reference. The bindings may add a reference at any time, even while another thread, which does not hold their
    // lock, drops the last one. Therefore a bit of the reference count records that the wrapper is owned. The last
    // reference to such a tensor is not dropped but passed to the bindings, which drop it or give it to the wrapper.
    void* wrapper() const { return wrapper_; }
    bool owns_wrapper() const { return refs_.load(std::memory_order_relaxed) & kOwnsWrapper; }
    void set_wrapper(void* wrapper, bool owned) {
        wrapper_ = wrapper;
        if (owned == owns_wrapper()) return;
        owned ? refs_.fetch_or(kOwnsWrapper, std::memory_order_acq_rel)
              : refs_.fetch_and(~kOwnsWrapper, std::memory_order_acq_rel);
    }
    bool drop() const noexcept {
        uint32_t n = refs_.load(std::memory_order_acquire);
        if (n == 1) {
            refs_.store(0, std::memory_order_relaxed);
            return true;
        }
        while ((n & ~kOwnsWrapper) != 1)
            if (refs_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire))
                return false;
        return true;
    }
    uint32_t use_count() const noexcept { return RefCounted::use_count() & ~kOwnsWrapper; }

    /// Replaces the tensor's memory and geometry (`set_`, `.data =`, resizing an out= argument).
    void assign(Ref<Storage> storage, IntList sizes, IntList strides, int64_t offset, DType dtype);

  private:
    friend class Tensor;
    friend struct TensorFactory;
    TensorImpl() = default;
    ~TensorImpl() = default;
    void set_geometry(const int64_t* sizes, const int64_t* strides, int ndim);
    void classify();

    static constexpr uint32_t kOwnsWrapper = uint32_t{1} << 31;
    uint8_t ndim_ = 0;
    uint64_t key_ = 0;
    TensorImpl* root_ = nullptr;
    Storage* storage_ = nullptr;
    // Null if the storage counts the writes.
    VersionCounter* versions_ = nullptr;
    int64_t offset_ = 0;
    int64_t numel_ = 0;
    int64_t* geometry_ = nullptr;  // ndim sizes, then ndim strides
    void* wrapper_ = nullptr;
    void* meta_ = nullptr;
    TensorImpl* grad_ = nullptr;
    int64_t inline_geometry_[2 * kInlineDims];
};

/// A reference to a TensorImpl. May be undefined: an omitted optional argument is an undefined tensor.
class RL_API Tensor {
  public:
    Tensor() = default;
    explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
    static Tensor share(TensorImpl* impl) { return Tensor(Ref<TensorImpl>::share(impl)); }

    bool defined() const { return static_cast<bool>(impl_); }
    TensorImpl* impl() const { return impl_.get(); }
    TensorImpl* release() { return impl_.release(); }
    bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

    DType dtype() const { return impl_->dtype(); }
    Device device() const { return impl_->device(); }
    int64_t dim() const { return impl_->ndim(); }
    int64_t numel() const { return impl_->numel(); }
    IntList sizes() const { return impl_->sizes(); }
    IntList strides() const { return impl_->strides(); }
    std::vector<int64_t> shape() const { return {sizes().begin(), sizes().end()}; }
    int64_t size(int64_t d) const {
        const int64_t n = dim(), index = d < 0 ? d + n : d;
        if (index < 0 || index >= n) [[unlikely]]
            throw_no_dimension(d, n);
        return impl_->size(static_cast<int>(index));
    }
    bool is_contiguous() const { return impl_->contiguous(); }
    bool is_floating_point() const { return is_floating(dtype()); }
    uint32_t version() const { return impl_->version(); }
    template <class T>
    T* data() const {
        return static_cast<T*>(impl_->data());
    }

    /// True for a leaf for which requires_grad was set, and for a tensor computed from such a leaf while gradients were
    /// enabled.
    bool requires_grad() const {
        return (impl_->stages() & bit(Stage::Autograd)) && !impl_->has(Flag::DetachedView);
    }
    /// Raises RuntimeError unless the tensor is a leaf of a floating-point or complex dtype.
    void set_requires_grad(bool on) const;
    bool is_leaf() const {
        return !impl_->has(Flag::NonLeaf) &&
               !(impl_->is_view() && (impl_->root()->own_stages() & bit(Stage::Autograd)) && requires_grad());
    }
    Tensor grad() const { return share(impl_->grad()); }

    friend bool operator==(const Tensor&, const Tensor&) = delete;

  private:
    [[noreturn, gnu::cold]] static void throw_no_dimension(int64_t d, int64_t n);

    Ref<TensorImpl> impl_;
};

using TensorList = List<Tensor>;

/// An argument that is a tensor or a number.
class TensorOrScalar {
  public:
    TensorOrScalar(const Tensor& t) : tensor_(&t) {}
    TensorOrScalar(Scalar s) : scalar_(s) {}
    TensorOrScalar(double s) : scalar_(s) {}
    TensorOrScalar(int s) : scalar_(s) {}
    TensorOrScalar(int64_t s) : scalar_(s) {}

    bool is_tensor() const { return tensor_ != nullptr; }
    /// The tensor belongs to the caller and is valid only during the call.
    const Tensor& tensor() const { return *tensor_; }
    Scalar scalar() const { return scalar_; }

  private:
    const Tensor* tensor_ = nullptr;
    Scalar scalar_;
};

// Functions that make tensors without calling operators, so that no stage records them.

/// Returns a new, uninitialised, row-major tensor. Raises RuntimeError if a size is negative or the sizes overflow.
RL_API Tensor make_tensor(IntList sizes, DType dtype, Device device = {});
/// Returns a new, uninitialised tensor with the geometry of `like`, which must be dense. The result is row-major if
/// `like` is contiguous.
RL_API Tensor make_like(const Tensor& like, DType dtype);
/// Returns a new tensor with the given strides, which must not be negative. The elements may have gaps between them.
RL_API Tensor make_strided(IntList sizes, IntList strides, DType dtype, Device device = {});
/// Returns a tensor over an existing storage. Raises RuntimeError if an element is outside the storage.
RL_API Tensor make_over(Ref<Storage> storage, IntList sizes, IntList strides, int64_t offset, DType dtype);
/// Returns a view of `base` (see Note [Views and their root]). The geometry is not checked.
RL_API Tensor make_view(const Tensor& base, IntList sizes, IntList strides, int64_t offset);
/// Returns a tensor that shares the memory and the version of `base`, but not its history, as `detach` does.
RL_API Tensor make_alias(const Tensor& base);
/// Returns a tensor that shares the memory of `base`, but neither its version nor its history, as `.data` does.
RL_API Tensor make_data(const Tensor& base);
/// Returns a 0-d CPU tensor.
RL_API Tensor make_scalar(Scalar value, DType dtype);

/// Default values of list arguments: kInts<0, 1> is the list (0, 1).
template <int64_t... values>
inline constexpr int64_t kIntsData[] = {values...};
template <int64_t... values>
inline const IntList kInts{kIntsData<values...>, sizeof...(values)};

/// Returns the sizes as Python writes a tuple: "(3, 4)".
RL_API std::string to_string(IntList sizes);

}  // namespace rushlight
