#include "rushlight/tensor.h"

#include <atomic>
#include <cstring>

#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/gradients.h"
#include "rushlight/sparse.h"
#include "rushlight/streams.h"
#include "tensor/factory.h"
#include "tensor/object_pool.h"

namespace rushlight {
namespace {
using Pool = ObjectPool<sizeof(TensorImpl), alignof(TensorImpl)>;

MetaTable meta_table{};
bool meta_table_set = false;
WrapperTable wrapper_table{};
BatchTable batch_table{};
std::atomic<DetachedViewWatcher> view_watcher{nullptr};

uint64_t device_bits(Device d) {
    return (static_cast<uint64_t>(d.type) << 24) |
           (static_cast<uint64_t>(static_cast<uint8_t>(d.index)) << 32);
}

// Note [Sizes that fit]
// Sizes and strides come from users. The product of a tensor's sizes, where sizes of 0 count as 1, is at most
// kMaxElements, and so is the extent of its geometry. These limits are checked here. Therefore other code need not
// check whether products of sizes, or numbers of bytes for any dtype, overflow.
constexpr int64_t kMaxElements = INT64_MAX / 16;

// Returns the product of the sizes. Raises RuntimeError if it is too large.
int64_t checked_numel(IntList sizes) {
    RL_CHECK(sizes.size() <= kMaxDims, throw_runtime, "a tensor has at most %d dimensions, got %zu", kMaxDims,
             sizes.size());
    int64_t product = 1;
    bool overflow = false, empty = false;
    for (int64_t n : sizes) {
        RL_CHECK(n >= 0, throw_runtime, "a dimension cannot be negative: got shape %s",
                 to_string(sizes).c_str());
        empty |= n == 0;
        overflow |= __builtin_mul_overflow(product, n ? n : 1, &product);
    }
    RL_CHECK(!overflow && product <= kMaxElements, throw_runtime,
             "the number of elements of shape %s overflows a 64-bit integer", to_string(sizes).c_str());
    return empty ? 0 : product;
}

size_t checked_nbytes(int64_t numel, DType dtype) { return static_cast<size_t>(numel) * itemsize(dtype); }

// The distance from the first element to one past the last, in elements; 0 if the geometry is empty.
int64_t checked_extent(IntList sizes, IntList strides) {
    int64_t last = 0;
    bool overflow = false, empty = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
        int64_t step;
        RL_CHECK(strides[d] >= 0, throw_runtime, "strides cannot be negative: got %s",
                 to_string(strides).c_str());
        empty |= sizes[d] == 0;
        overflow |= strides[d] > kMaxElements;
        overflow |= __builtin_mul_overflow(sizes[d] ? sizes[d] - 1 : 0, strides[d], &step);
        overflow |= __builtin_add_overflow(last, step, &last);
    }
    RL_CHECK(!overflow && last < kMaxElements, throw_runtime,
             "shape %s with strides %s needs offsets beyond the range of a 64-bit integer",
             to_string(sizes).c_str(), to_string(strides).c_str());
    return empty ? 0 : last + 1;
}

// Returns the number of elements. The geometries of views are computed by each view operator, and only checked here.
int64_t checked_geometry(const int64_t* sizes, const int64_t* strides, int ndim) {
    int64_t product = 1, reach = 0;
    uint64_t bits = 0;
    bool overflow = false, empty = false;
    for (int d = 0; d < ndim; ++d) {
        int64_t n = sizes[d], step = 0;
        bits |= static_cast<uint64_t>(n) | static_cast<uint64_t>(strides[d]);
        empty |= n == 0;
        n += n == 0;
        overflow |= __builtin_mul_overflow(product, n, &product);
        overflow |= __builtin_mul_overflow(n - 1, strides[d], &step);
        overflow |= __builtin_add_overflow(reach, step, &reach);
    }
    if (overflow || ((bits | static_cast<uint64_t>(product) | static_cast<uint64_t>(reach)) >> 59))
        [[unlikely]] {
        IntList size(sizes, static_cast<size_t>(ndim));
        checked_numel(size);
        checked_extent(size, {strides, static_cast<size_t>(ndim)});
        throw_runtime("shape %s is too large", to_string(size).c_str());
    }
    return empty ? 0 : product;
}

}  // namespace

void set_meta_table(const MetaTable& table) {
    RL_CHECK(
        !meta_table_set, throw_runtime,
        "a provider of per-tensor state (autograd) is attached already, and a process can have only one");
    meta_table = table;
    meta_table_set = true;
}
const MetaTable* meta_table_or_null() { return meta_table_set ? &meta_table : nullptr; }
void set_wrapper_table(const WrapperTable& table) { wrapper_table = table; }
void set_batch_table(const BatchTable& table) { batch_table = table; }
const Tensor& batched_value(const Tensor& t) { return batch_table.value(t); }
void watch_detached_views(DetachedViewWatcher watcher) {
    view_watcher.store(watcher, std::memory_order_relaxed);
}

void fail_batched(const char* op) {
    throw_runtime(
        "%s: inside vmap a tensor represents one example of a batch, so its values cannot be read\n"
        "hint: use torch.where(condition, a, b) instead of `if`, and masks instead of results whose shape "
        "depends on values",
        op);
}

void fail_without_values(const char* op, const Tensor& t) {
    if (is_batched(t)) fail_batched(op);
    throw_runtime("%s: a tensor of layout %s has no dense memory\nhint: use to_dense(), or values()", op,
                  layout_name(t));
}

std::string to_string(IntList sizes) {
    std::string text = "(";
    for (size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
    return text + (sizes.size() == 1 ? ",)" : ")");
}

// The bits of a dtype, with the stage of float8 tensors.
constexpr uint64_t dtype_bits(DType t) {
    return (static_cast<uint64_t>(t) << 16) | (uint64_t{is_float8(t)} << static_cast<int>(Stage::Float8));
}
constexpr uint64_t kDTypeBits = (uint64_t{0xff} << 16) | bit(Stage::Float8);
constexpr uint64_t kDeviceBits = uint64_t{0xffff} << 24;
// The bits that a view or an alias takes from its base.
constexpr uint64_t kKept = kDTypeBits | kDeviceBits | bit(Stage::Sparse);

struct TensorFactory {
    static TensorImpl* make(Storage* storage, uint64_t key, int64_t offset) {
        // Written without "()": a value initialisation would also fill inline_geometry_, which has no initialiser, with
        // zeros, by the slow instruction `rep stos`.
        auto* impl = new (Pool::allocate()) TensorImpl;
        impl->key_ = key;
        impl->root_ = impl;
        impl->storage_ = storage;
        impl->offset_ = offset;
        impl->geometry_ = impl->inline_geometry_;
        return impl;
    }
    // The strides are row-major, so there is no need to determine whether the geometry is contiguous.
    static Tensor fresh(IntList sizes, DType dtype, Device device) {
        int64_t numel = checked_numel(sizes);
        Ref<Storage> storage = Storage::allocate(checked_nbytes(numel, dtype), device);
        uint64_t key = dtype_bits(dtype) | device_bits(device) | bit(Flag::Contiguous) | bit(Flag::Dense);
        if (dispatch_state.inference) [[unlikely]]
            key |= bit(Flag::Inference);
        TensorImpl* impl = make(storage.release(), key, 0);
        impl->numel_ = numel;
        int n = static_cast<int>(sizes.size());
        impl->ndim_ = static_cast<uint8_t>(n);
        if (n > kInlineDims) impl->geometry_ = new int64_t[2 * n];
        set_row_major(impl, sizes.data());
        return Tensor(Ref<TensorImpl>::adopt(impl));
    }
    static void set_row_major(TensorImpl* impl, const int64_t* sizes) {
        const int n = impl->ndim_;
        int64_t step = 1;
        for (int d = n - 1; d >= 0; --d) {
            impl->geometry_[d] = sizes[d];
            impl->geometry_[n + d] = step;
            step *= sizes[d] > 1 ? sizes[d] : 1;
        }
    }
    static Tensor like(const Tensor& base, DType dtype) {
        TensorImpl* from = base.impl();
        size_t nbytes = static_cast<size_t>(from->numel_) * itemsize(dtype);
        Ref<Storage> storage = Storage::allocate(nbytes, from->device());
        uint64_t key = (from->key_ & ((uint64_t{0xffff} << 24) | bit(Flag::Contiguous) | bit(Flag::Dense))) |
                       dtype_bits(dtype);
        if (dispatch_state.inference) [[unlikely]]
            key |= bit(Flag::Inference);
        TensorImpl* impl = make(storage.release(), key, 0);
        impl->numel_ = from->numel_;
        impl->ndim_ = from->ndim_;
        if (impl->ndim_ > kInlineDims) impl->geometry_ = new int64_t[2 * impl->ndim_];
        if (from->contiguous()) [[likely]] {
            // A contiguous tensor may have any stride in a dimension of size 1, or if it is empty.
            set_row_major(impl, from->geometry_);
        } else {
            for (int i = 0; i < 2 * impl->ndim_; ++i) impl->geometry_[i] = from->geometry_[i];
        }
        return Tensor(Ref<TensorImpl>::adopt(impl));
    }
    static Tensor over(Ref<Storage> storage, IntList sizes, IntList strides, int64_t offset, DType dtype) {
        uint64_t key = dtype_bits(dtype) | device_bits(storage->device());
        if (dispatch_state.inference) [[unlikely]]
            key |= bit(Flag::Inference);
        TensorImpl* impl = make(storage.release(), key, offset);
        Tensor result(Ref<TensorImpl>::adopt(impl));
        impl->set_geometry(sizes.data(), strides.data(), static_cast<int>(sizes.size()));
        return result;
    }
    static Tensor view(const Tensor& base, IntList sizes, IntList strides, int64_t offset) {
        TensorImpl* from = base.impl();
        uint64_t key = from->key_ & (kKept | bit(Flag::Inference));
        from->storage_->retain();
        TensorImpl* impl = make(from->storage_, key, offset);
        if (dispatch_state.grad_mode && !dispatch_state.inference) [[likely]] {
            impl->root_ = from->root_;
            impl->root_->retain();
        } else {
            impl->key_ |= bit(Flag::DetachedView);
            if (const auto watcher = view_watcher.load(std::memory_order_relaxed)) [[unlikely]]
                watcher(from, impl);
        }
        share_versions(from, impl);
        Tensor result(Ref<TensorImpl>::adopt(impl));
        impl->set_geometry(sizes.data(), strides.data(), static_cast<int>(sizes.size()));
        return result;
    }
    static void share_versions(const TensorImpl* from, TensorImpl* to) {
        if (!from->versions_) [[likely]]
            return;
        from->versions_->retain();
        to->versions_ = from->versions_;
    }
    static Tensor alias(const Tensor& base) {
        TensorImpl* from = base.impl();
        uint64_t key = from->key_ & (kKept | bit(Flag::Inference));
        from->storage_->retain();
        TensorImpl* impl = make(from->storage_, key, from->offset_);
        share_versions(from, impl);
        Tensor result(Ref<TensorImpl>::adopt(impl));
        impl->set_geometry(from->geometry_, from->geometry_ + from->ndim_, from->ndim_);
        return result;
    }
};

void TensorImpl::set_geometry(const int64_t* sizes, const int64_t* strides, int ndim) {
    const int64_t numel = checked_geometry(sizes, strides, ndim);
    if (geometry_ != inline_geometry_) delete[] geometry_;
    geometry_ = inline_geometry_;
    if (ndim > kInlineDims) geometry_ = new int64_t[2 * ndim];
    ndim_ = static_cast<uint8_t>(ndim);
    for (int d = 0; d < ndim; ++d) {
        geometry_[d] = sizes[d];
        geometry_[ndim + d] = strides[d];
    }
    numel_ = numel;
    classify();
}

// Sets Contiguous and Dense from the geometry.
void TensorImpl::classify() {
    const int64_t *n = geometry_, *s = geometry_ + ndim_;
    key_ &= ~(bit(Flag::Contiguous) | bit(Flag::Dense));
    int64_t step = 1;
    bool contiguous = true;
    for (int d = ndim_ - 1; d >= 0; --d) {
        if (n[d] != 1) {
            contiguous &= s[d] == step;
            step *= n[d];
        }
    }
    if (contiguous || numel_ == 0) {
        key_ |= bit(Flag::Contiguous) | bit(Flag::Dense);
        return;
    }
    // Dense: in order of increasing strides, each stride is the product of the sizes of the dimensions with smaller
    // strides.
    int order[kMaxDims], m = 0;
    for (int d = 0; d < ndim_; ++d) {
        if (n[d] == 1) continue;
        int i = m++;
        for (; i > 0 && s[order[i - 1]] > s[d]; --i) order[i] = order[i - 1];
        order[i] = d;
    }
    step = 1;
    for (int i = 0; i < m; ++i) {
        if (s[order[i]] != step) return;
        step *= n[order[i]];
    }
    key_ |= bit(Flag::Dense);
}

void TensorImpl::destroy(TensorImpl* impl) {
    // A wrapper that the tensor keeps alive is released first: while it is destroyed, Python code may still use the
    // tensor.
    if (impl->owns_wrapper()) [[unlikely]]
        return wrapper_table.release(impl);
    if (impl->meta_) meta_table.destroy(impl->meta_);
    if (impl->grad_ && impl->grad_->drop()) destroy(impl->grad_);
    if (impl->root_ != impl && impl->root_->drop()) destroy(impl->root_);
    if (impl->storage_ && impl->storage_->drop()) Storage::destroy(impl->storage_);
    if (impl->versions_ && impl->versions_->drop()) VersionCounter::destroy(impl->versions_);
    if (impl->geometry_ != impl->inline_geometry_) delete[] impl->geometry_;
    impl->~TensorImpl();
    Pool::release(impl);
}

void TensorImpl::leave_root() {
    TensorImpl* root = root_;
    root_ = this;
    if (root != this && root->drop()) destroy(root);
}

void TensorImpl::own_version(uint32_t version) {
    VersionCounter* former = versions_;
    versions_ = new VersionCounter(version);
    if (former && former->drop()) VersionCounter::destroy(former);
}

Geometry TensorImpl::geometry() const {
    return {{sizes().begin(), sizes().end()}, {strides().begin(), strides().end()}, offset_};
}

void TensorImpl::set_grad(Ref<TensorImpl> grad) {
    TensorImpl* old = grad_;
    grad_ = grad.release();
    if (old && old->drop()) destroy(old);
}

void TensorImpl::assign(Ref<Storage> storage, IntList sizes, IntList strides, int64_t offset, DType dtype) {
    // If this raises, the tensor is unchanged.
    checked_geometry(sizes.data(), strides.data(), static_cast<int>(sizes.size()));
    key_ = (key_ & ~(kDTypeBits | kDeviceBits)) | dtype_bits(dtype) | device_bits(storage->device());
    Storage* old = storage_;
    storage_ = storage.release();
    offset_ = offset;
    set_geometry(sizes.data(), strides.data(), static_cast<int>(sizes.size()));
    if (old->drop()) Storage::destroy(old);
}

void Tensor::throw_no_dimension(int64_t d, int64_t n) {
    throw_index("size(dim): dim must be in [%lld, %lld], got %lld", (long long)-n, (long long)n - 1,
                (long long)d);
}

void Tensor::set_requires_grad(bool on) const {
    TensorImpl* impl = impl_.get();
    if (is_batched(*this)) [[unlikely]]
        return batch_table.set_requires_grad(*this, on);
    RL_CHECK(
        !on || is_differentiable(dtype()), throw_runtime,
        "requires_grad_(True): only floating point and complex tensors can require gradients, this one is %s",
        name(dtype()));
    RL_CHECK(on || is_leaf(), throw_runtime,
             "requires_grad_(False): this tensor was computed from others that require gradients\n"
             "hint: use detach() for a tensor outside the graph");
    RL_CHECK(
        !on || !impl->has(Flag::Inference) || dispatch_state.inference, throw_runtime,
        "requires_grad_(True): this tensor was made in inference_mode\nhint: clone() it outside of inference_mode first");
    if (!is_leaf()) return;
    if (on) {
        impl->set(Flag::DetachedView, false);
        impl->leave_root();
    }
    impl->set_stage(Stage::Autograd, on);
}

Tensor make_tensor(IntList sizes, DType dtype, Device device) {
    return TensorFactory::fresh(sizes, dtype, device);
}

Tensor make_like(const Tensor& like, DType dtype) { return TensorFactory::like(like, dtype); }

Tensor make_strided(IntList sizes, IntList strides, DType dtype, Device device) {
    checked_numel(sizes);
    size_t nbytes = checked_nbytes(checked_extent(sizes, strides), dtype);
    return TensorFactory::over(Storage::allocate(nbytes, device), sizes, strides, 0, dtype);
}

Tensor make_pinned(const Tensor& like, DeviceType type) {
    RL_CHECK(like.device().type == DeviceType::CPU, throw_runtime,
             "pin_memory: needs a tensor on the CPU, got one on %s", name(like.device()).c_str());
    const Tensor plan = make_tensor(like.sizes(), like.dtype(), Device{DeviceType::Meta});
    const auto bytes = static_cast<size_t>(like.numel()) * itemsize(like.dtype());
    return make_over(allocate_pinned(bytes, type), plan.sizes(), plan.strides(), 0, like.dtype());
}

Tensor make_over(Ref<Storage> storage, IntList sizes, IntList strides, int64_t offset, DType dtype) {
    checked_numel(sizes);
    int64_t need = checked_extent(sizes, strides);
    RL_CHECK(offset >= 0, throw_runtime, "the storage offset must not be negative, got %lld",
             (long long)offset);
    RL_CHECK(
        need == 0 || (offset <= kMaxElements && checked_nbytes(offset + need, dtype) <= storage->nbytes()),
        throw_runtime, "shape %s with strides %s at offset %lld needs more than the %zu bytes of the storage",
        to_string(sizes).c_str(), to_string(strides).c_str(), (long long)offset, storage->nbytes());
    return TensorFactory::over(std::move(storage), sizes, strides, offset, dtype);
}

Tensor make_without_memory(Ref<Storage> storage, IntList sizes, IntList strides, DType dtype) {
    return TensorFactory::over(std::move(storage), sizes, strides, 0, dtype);
}

Tensor make_view(const Tensor& base, IntList sizes, IntList strides, int64_t offset) {
    return TensorFactory::view(base, sizes, strides, offset);
}

Tensor make_alias(const Tensor& base) { return TensorFactory::alias(base); }

Tensor make_data(const Tensor& base) {
    Tensor t = make_alias(base);
    t.impl()->own_version(0);
    return t;
}

Tensor make_scalar(Scalar value, DType dtype) {
    Tensor t = make_tensor({}, dtype);
    switch (dtype) {
        case DType::Bool: *t.data<bool>() = value.to<bool>(); break;
        case DType::UInt8: *t.data<uint8_t>() = value.to<uint8_t>(); break;
        case DType::Int8: *t.data<int8_t>() = value.to<int8_t>(); break;
        case DType::Int16: *t.data<int16_t>() = value.to<int16_t>(); break;
        case DType::Int32: *t.data<int32_t>() = value.to<int32_t>(); break;
        case DType::Int64: *t.data<int64_t>() = value.to<int64_t>(); break;
        case DType::UInt16: *t.data<uint16_t>() = value.to<uint16_t>(); break;
        case DType::UInt32: *t.data<uint32_t>() = value.to<uint32_t>(); break;
        case DType::UInt64: *t.data<uint64_t>() = value.to<uint64_t>(); break;
        case DType::Complex64: *t.data<Complex<float>>() = value.to<Complex<float>>(); break;
        case DType::Complex128: *t.data<Complex<double>>() = value.to<Complex<double>>(); break;
        default: {
            float v = value.to<float>();
            if (dtype == DType::Float64) *t.data<double>() = value.to<double>();
            else if (dtype == DType::Float32) *t.data<float>() = v;
            else throw_not_implemented("a scalar tensor of dtype %s is not supported yet", name(dtype));
        }
    }
    return t;
}

}  // namespace rushlight
