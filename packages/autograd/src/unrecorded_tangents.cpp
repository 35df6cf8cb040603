#include "rushlight/autograd/unrecorded_tangents.h"

#include <algorithm>

#include "rushlight/autograd/transform.h"

namespace rushlight::autograd {
namespace {

// The node of the tangents that the operators of a Function's forward computed, which are not recorded. Its edges lead to
// the arguments of the Function and to their tangents.
class TangentNode final : public Node {
  public:
    RL_NODE_MEMORY
    TangentNode(std::string function, uint32_t num_edges)
        : Node("UnrecordedTangents", 1, num_edges), function_(std::move(function)) {
        never_used_up();
    }
    void apply(std::span<Tensor>, std::span<Tensor>) override {
        throw_not_implemented(
            "backward(): the tangents of %s cannot be differentiated, because it does not define jvp\n"
            "hint: write a static method jvp(ctx, *tangents) that calls operators",
            function_.c_str());
    }
    void release_saved() override {}
    std::string name() const override { return "UnrecordedTangents(" + function_ + ")"; }

  private:
    std::string function_;
};

void add_edges(const Tensor& t, std::vector<Edge>& edges) {
    if (!t.defined()) return;
    if (needs_grad(t)) edges.push_back(recorded_edge(physical(t)));
    for (Level level = innermost_level(t); level;) {
        const Tensor along = tangent(t, level);
        AtLevel below(level);
        add_edges(along, edges);
        level = innermost_level(t);
    }
}

void connect_tangents(const Tensor& t, const Ref<Node>& node, bool written);

// Returns `t` and its tangents with `node` as their history. If `t` was not written and has a history, it keeps this
// history: forward returned an argument, or a view of an argument.
Tensor connected(const Tensor& t, const Ref<Node>& node, bool written) {
    if (is_batched(t))
        return wrap_levels(connected(batched(t).value, node, written), batched(t).levels,
                           batched(t).innermost);
    const bool keep = t.requires_grad() && !written;
    const Tensor result = keep ? t : cut_off(t);
    if (!keep) set_history(result, node);
    connect_tangents(result, node, written);
    return result;
}

void connect_tangents(const Tensor& t, const Ref<Node>& node, bool written) {
    for (Level level = innermost_level(t); level;) {
        const Tensor along = tangent(t, level);
        AtLevel below(level);
        const Tensor made = connected(along, node, written);
        if (!made.is_same(along)) set_tangent(t, made, level);
        level = innermost_level(t);
    }
}

}  // namespace

UnrecordedTangents::UnrecordedTangents(TensorList arguments) {
    if (!forward_mode_is_on() || !grad_mode() || dispatch_state.off & bit(Stage::Dual)) return;
    bool dual = false;
    for (const Tensor& t : arguments) dual |= innermost_level(t) != 0;
    if (!dual) return;
    for (const Tensor& t : arguments) add_edges(t, edges_);
}

void UnrecordedTangents::connect(const std::string& function, TensorList results, TensorList written) {
    if (edges_.empty()) return;
    const auto node = Ref<Node>::adopt(new TangentNode(function, static_cast<uint32_t>(edges_.size())));
    std::move(edges_.begin(), edges_.end(), node->edges().begin());
    for (const Tensor& t : results) {
        if (!t.defined()) continue;
        const bool in_place = std::ranges::any_of(written, [&](const Tensor& one) { return one.is_same(t); });
        connect_tangents(t, node, in_place);
    }
}

}  // namespace rushlight::autograd
