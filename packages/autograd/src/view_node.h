// Nodes that read and write a root through the geometry of one of its views.
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// The shape, strides and offset of a root and of one of its views, relative to the first element of either. If one of them
/// is complex and the other real, both are kept as real numbers.
class Window {
  public:
    Window(const Tensor& root, const Tensor& view);
    /// Returns zeros in memory with room for the root and the view, to hold a gradient of either.
    Tensor fresh(const Tensor& grad) const;
    /// Returns that memory with `values`, which have the root's shape; values that share an element are
    /// averaged.
    Tensor filled(const Tensor& values) const;
    /// That memory with `grad`, which has the view's shape; the sum of those that share an element, divided by the number of
    /// the root's elements that share it.
    Tensor gathered(const Tensor& grad) const;
    /// Return that memory as the gradient of the root, and as that of the view.
    Tensor whole(const Tensor& flat) const { return seen(flat, root_, root_complex_); }
    Tensor part(const Tensor& flat) const { return seen(flat, view_, view_complex_); }
    /// Whether `t` has the root's strides, and the view reads nothing before or behind the root's elements.
    bool seen_alike(const Tensor& t) const;

  private:
    static Tensor seen(const Tensor& flat, const Geometry& g, bool as_complex);
    DType flat_dtype(const Tensor& grad) const;
    Tensor widened(const Tensor& grad) const;
    Tensor shares(const Tensor& flat) const;
    Tensor shared_out(const Tensor& flat, DType dtype) const;

    Geometry root_, view_;
    bool root_complex_ = false, view_complex_ = false;  // it alone
};

/// The history of a view, taken from its root: Note [Stale views]. Its gradient is a gradient of the root
/// that is zero outside of the view.
class ViewOfRoot final : public Node {
  public:
    RL_NODE_MEMORY
    ViewOfRoot(const Tensor& root, const Tensor& view, const char* name = "AsStridedBackward0")
        : Node(name, 1, 1), window_(root, view) {
        never_used_up();
    }
    explicit ViewOfRoot(Window window) : Node("AsStridedBackward0", 1, 1), window_(std::move(window)) {
        never_used_up();
    }
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    void release_saved() override {}

  private:
    Window window_;
};

/// The history of a root after an in-place operator on one of its views: Note [In-place].
class WriteThroughView final : public Node {
  public:
    RL_NODE_MEMORY
    WriteThroughView(const Tensor& root, const Tensor& view, Ref<Node> write, uint32_t index);
    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    void release_saved() override;
    void saved(const SavedVisitor& visit) const override { write_->saved(visit); }
    std::string name() const override { return "CopySlices(" + write_->name() + ")"; }

    /// For a result that `write` saved, while its derivative is computed: the view of the root that is the
    /// result. Null for nodes that do not write through a view. The inner node must not be in a graph beside
    /// the whole node, which uses it up.
    static Ref<Node> history_of_result(const Node* write);

  private:
    static constinit thread_local WriteThroughView* running;
    Window window_;
    Ref<Node> write_;
    uint32_t index_;
};

}  // namespace rushlight::autograd
