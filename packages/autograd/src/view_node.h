// Nodes that read and write a root through the geometry of one of its views.
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// The shapes, strides and offsets of a root and of one of its views. Both offsets are counted from the root's first
/// element or the view's, whichever comes first in memory. If only one of the two tensors is complex, the geometries of
/// both are given in units of real numbers.
class Window {
  public:
    Window(const Tensor& root, const Tensor& view);
    /// Returns a flat buffer of zeros that is large enough for a gradient of the root and for a gradient of the view.
    Tensor fresh(const Tensor& grad) const;
    /// Returns such a buffer filled with `values`, which have the root's shape. Values that share a location are
    /// averaged.
    Tensor filled(const Tensor& values) const;
    /// Returns such a buffer filled with `grad`, which has the view's shape. Gradients that share a location are
    /// summed, and divided by the number of the root's elements at this location.
    Tensor gathered(const Tensor& grad) const;
    /// whole() returns such a buffer as a gradient of the root, and part() returns it as a gradient of the view.
    Tensor whole(const Tensor& flat) const { return seen(flat, root_, root_complex_); }
    Tensor part(const Tensor& flat) const { return seen(flat, view_, view_complex_); }
    /// Whether `t` has the root's strides, and the view lies between the root's first and last element.
    bool seen_alike(const Tensor& t) const;

  private:
    static Tensor seen(const Tensor& flat, const Geometry& g, bool as_complex);
    DType flat_dtype(const Tensor& grad) const;
    Tensor widened(const Tensor& grad) const;
    Tensor shares(const Tensor& flat) const;
    Tensor shared_out(const Tensor& flat, DType dtype) const;

    Geometry root_, view_;
    bool root_complex_ = false, view_complex_ = false;  // whether only the root, or only the view, is complex
};

/// The history of a view, derived from its root: Note [Stale views]. The node returns a gradient of the root that is zero
/// outside of the view.
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
    void copy_results() override { write_->copy_results(); }
    void saved(const SavedVisitor& visit) const override { write_->saved(visit); }
    std::string name() const override { return "CopySlices(" + write_->name() + ")"; }

    /// Returns the history of a result that `write` saved. The result is a view of the root. Called while a backward
    /// pass computes the gradients of `write`. Returns null if `write` does not write through a view. `write` itself
    /// must not be in a graph, because the WriteThroughView node that contains it releases its saved tensors.
    static Ref<Node> history_of_result(const Node* write);

  private:
    static constinit thread_local WriteThroughView* running;
    Window window_;
    Ref<Node> write_;
    uint32_t index_;
};

}  // namespace rushlight::autograd
