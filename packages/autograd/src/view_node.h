// Nodes that read and write a root through the geometry of one of its views.
#pragma once

#include "rushlight/autograd/variable.h"

namespace rushlight::autograd {

/// The shape, strides and place of a root and of one of its views, relative to the root's first element.
struct Window {
    Window(const Tensor& root, const Tensor& view);
    /// A zero or given gradient of the root in memory of the root's strides, and the view's part of it.
    Tensor fresh(DType dtype, Device device) const;
    Tensor part(const Tensor& whole) const;

    Geometry root, view;
};

/// The history of a view, taken from its root: Note [Stale views]. Its gradient is the root's, zero outside.
class ViewOfRoot final : public Node {
  public:
    RL_NODE_MEMORY
    ViewOfRoot(const Tensor& root, const Tensor& view, const char* name = "AsStridedBackward0")
        : Node(name, 1, 1), window_(root, view) {}
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
    std::string name() const override { return "CopySlices(" + write_->name() + ")"; }

  private:
    Window window_;
    Ref<Node> write_;
    uint32_t index_;
};

}  // namespace rushlight::autograd
