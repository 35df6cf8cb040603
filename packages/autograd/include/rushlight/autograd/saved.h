// The arguments and results that a node saves until the backward pass.
#pragma once

#include "rushlight/autograd/saved_hook.h"
#include "rushlight/autograd/saved_sizes.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/memory_format.h"

namespace rushlight::autograd {

// Note [Saved tensors]
// A saved tensor stores the version of its memory; unpacking raises an error if the memory was written in the
// meantime. A saved argument is stored directly. A saved result and its node would keep each other alive, so an alias
// without history is stored in place of a result, and unpacking connects the alias to the graph again. Before an in-place
// operator writes to a result, its node replaces the alias by a copy.
class RL_API SavedTensor {
  public:
    SavedTensor() = default;
    void save(const Tensor& t) {
        if (saved_hook() && t.defined()) [[unlikely]]
            return pack(t);
        tensor_ = t;
        if (!t.defined()) return;
        version_ = t.version();
        is_leaf_ = t.is_leaf();
    }
    void save_result(const Tensor& t, uint32_t index) {
        if (!t.defined()) return;
        index_ = index;
        is_result_ = true;
        if (saved_hook()) [[unlikely]]
            return pack(t);
        tensor_ = make_alias(t);
        version_ = t.version();
        if (forward_mode_is_on()) [[unlikely]]
            share_tangent(t, tensor_);
    }
    /// `node` is the node that saved the tensor.
    Tensor unpack(Node* node) const {
        if (!tensor_.defined()) return packed_ ? unpack_packed(node) : tensor_;
        if (tensor_.version() != version_) [[unlikely]]
            fail(node);
        if (!is_leaf_ && tensor_.is_leaf() && grad_mode()) [[unlikely]]
            fail_detached(node);
        return is_result_ ? unpack_result(node) : tensor_;
    }
    void copy_result();
    void release() {
        tensor_ = Tensor();
        packed_ = nullptr;
    }
    bool defined() const { return tensor_.defined() || packed_; }
    /// Returns the stored tensor without checking its version; undefined if a hook packed the tensor. A stored result
    /// has no history.
    const Tensor& kept() const { return tensor_; }

  private:
    // For a tensor that a hook has packed: the packed object, its tangents, and, for an argument, its edge in the graph.
    struct Elsewhere {
        std::unique_ptr<Packed> packed;
        Tensor tangents;  // an empty tensor with these tangents; undefined if forward mode is off
        std::vector<int64_t> sizes;
        DType dtype;
        Edge edge;
    };
    void pack(const Tensor& t);
    Tensor unpack_packed(Node* node) const;
    Tensor unpack_result(Node* node) const;
    [[noreturn]] void fail(Node* node) const;
    [[noreturn]] void fail_detached(Node* node) const;

    Tensor tensor_;
    uint32_t version_ = 0;
    uint32_t index_ = 0;
    bool is_result_ = false;
    bool is_leaf_ = true;  // for an argument: whether it is a leaf
    std::unique_ptr<Elsewhere> packed_;
};

/// A saved argument that is a tensor or a number.
class SavedOperand {
  public:
    void save(const TensorOrScalar& v) {
        if (v.is_tensor()) tensor_.save(v.tensor());
        else scalar_ = v.scalar();
        is_tensor_ = v.is_tensor();
    }
    class Unpacked {
      public:
        Unpacked(Tensor t, Scalar s, bool is_tensor)
            : tensor_(std::move(t)), scalar_(s), is_tensor_(is_tensor) {}
        operator TensorOrScalar() const {
            return is_tensor_ ? TensorOrScalar(tensor_) : TensorOrScalar(scalar_);
        }

      private:
        Tensor tensor_;
        Scalar scalar_;
        bool is_tensor_;
    };
    Unpacked unpack(Node* node) const {
        return {is_tensor_ ? tensor_.unpack(node) : Tensor(), scalar_, is_tensor_};
    }
    void release() { tensor_.release(); }
    const SavedTensor& tensor() const { return tensor_; }

  private:
    SavedTensor tensor_;
    Scalar scalar_;
    bool is_tensor_ = false;
};

/// A list of saved tensors.
class SavedList {
  public:
    void save(TensorList list) {
        saved_.resize(list.size());
        for (size_t i = 0; i < list.size(); ++i) saved_[i].save(list[i]);
    }
    std::vector<Tensor> unpack(Node* node) const {
        std::vector<Tensor> list;
        list.reserve(saved_.size());
        for (const SavedTensor& s : saved_) list.push_back(s.unpack(node));
        return list;
    }
    void release() { saved_.clear(); }
    std::span<const SavedTensor> tensors() const { return saved_; }

  private:
    std::vector<SavedTensor> saved_;
};

/// Calls `visit` for a saved value; used to implement Node::saved.
inline void show(const Node::SavedVisitor& visit, const std::string& name, const SavedTensor& saved) {
    if (saved.defined()) visit(name, saved);
}
inline void show(const Node::SavedVisitor& visit, const std::string& name, const SavedOperand& saved) {
    show(visit, name, saved.tensor());
}
inline void show(const Node::SavedVisitor& visit, const std::string& name, const SavedList& saved) {
    size_t i = 0;
    for (const SavedTensor& one : saved.tensors()) show(visit, name + "[" + std::to_string(i++) + "]", one);
}

/// The shape, dtype, device and memory format of an argument. save_if_not() stores them only if they differ from the result's.
class RL_API SavedShape {
  public:
    void save(const Tensor& argument) {
        sizes_.assign(argument.sizes());
        dtype_ = argument.dtype();
        device_ = argument.device();
        format_ = argument.dim() < 4 ? MemoryFormat::Contiguous : format_of(argument);
    }
    void require(IntList shape, DType dtype, Device device) {
        sizes_.assign(shape);
        dtype_ = dtype;
        device_ = device;
        differs_ = true;
    }
    /// For pointwise operators: the shape and dtype to which a gradient of the result's shape must be
    /// reduced.
    void save_if_not(const Tensor& argument, const Tensor& result) {
        if (argument.dtype() == result.dtype() && argument.device() == result.device() &&
            argument.dim() == result.dim() &&
            std::equal(argument.sizes().begin(), argument.sizes().end(), result.sizes().begin()))
            return;
        save(argument);
        differs_ = true;
    }
    void save_if_not(const TensorOrScalar& argument, const Tensor& result) {
        if (argument.is_tensor()) save_if_not(argument.tensor(), result);
    }
    /// Sums a gradient over the broadcast dimensions, and converts it to the argument's dtype and device.
    Tensor fit(Tensor grad) const { return differs_ && grad.defined() ? reduce(grad) : grad; }
    /// Does the same as fit() above, but also supports an argument for which nothing was saved because it has the shape
    /// and dtype of the result. The gradient of such an argument is converted to the result's dtype, because a wider
    /// operand may have promoted the gradient. `of_result` has the dtype of the result.
    Tensor fit(Tensor grad, const Tensor& of_result) const {
        if (differs_ || !grad.defined()) return fit(std::move(grad));
        return grad.dtype() == of_result.dtype() ? grad : cast(grad, of_result.dtype());
    }
    IntList shape() const { return sizes_.list(); }
    DType dtype() const { return dtype_; }
    Device device() const { return device_; }
    MemoryFormat memory_format() const { return format_; }
    int64_t ndim() const { return static_cast<int64_t>(sizes_.list().size()); }
    int64_t numel() const {
        int64_t n = 1;
        for (int64_t s : sizes_.list()) n *= s;
        return n;
    }

  private:
    Tensor reduce(Tensor grad) const;
    static Tensor cast(const Tensor& grad, DType dtype);

    SavedSizes sizes_;
    DType dtype_ = DType::Float32;
    Device device_;
    MemoryFormat format_ = MemoryFormat::Contiguous;
    bool differs_ = false;
};

/// The shapes and dtypes of a list of arguments.
class SavedShapes {
  public:
    void save(TensorList list) {
        shapes_.resize(list.size());
        for (size_t i = 0; i < list.size(); ++i) shapes_[i].save(list[i]);
    }
    std::span<const SavedShape> shapes() const { return shapes_; }

  private:
    std::vector<SavedShape> shapes_;
};

}  // namespace rushlight::autograd
