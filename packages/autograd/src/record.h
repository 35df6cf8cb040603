// Functions that the generated stage functions share.
#pragma once

#include "rushlight/autograd/saved.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/random.h"

namespace rushlight::autograd {

inline Edge recorded_edge(const TensorOrScalar& v) {
    return v.is_tensor() ? recorded_edge(v.tensor()) : Edge{};
}

inline std::vector<Edge> edges_of(TensorList list) {
    std::vector<Edge> edges;
    for (const Tensor& t : list) edges.push_back(recorded_edge(t));
    return edges;
}

/// The result of an operator may be a view of a temporary that it allocated and for which nothing is
/// recorded. Such a result becomes a separate tensor: otherwise a write to a view of it would be recorded for
/// the temporary.
inline void leave_temporary(const Tensor& result) {
    if (result.defined() && result.impl()->is_view()) result.impl()->leave_root();
}

/// Results that come as a list: the node stores their number and shapes.
void set_histories(const std::vector<Tensor>& results, const Ref<Node>& node,
                   std::vector<SavedShape>& shapes);

/// Operators without a formula. When one of their arguments requires grad, an out= form raises, unless its results have no
/// derivative anyway, and the results of a functional form get a node that raises when a gradient arrives. In-place forms
/// write truth values: their gradient and tangent are zero. One boxed fallback serves all.
struct Unrecorded {
    const char* name;
    uint64_t hash;
    /// How many arguments an out= form writes whose results are integers or truth values; else 0.
    uint8_t constant_outs;
};
void install_unrecorded(const Unrecorded* list);

/// Raises NotImplementedError: there is no forward mode for the operator, or for one of its arguments.
[[noreturn]] void fail_no_jvp(const char* op, const char* argument = nullptr);

// For views in place (t_, unsqueeze_), which change a tensor's geometry but no values. Returns whether `t` is
// a view that reads its history from its root; if so, the cached history is dropped, and will be read again
// through the new geometry.
bool follows_root(const Tensor& t);
void forget_history(const Tensor& t);
/// Otherwise the view is recorded as a further operator in the tensor's own history.
void rebase_geometry(const Tensor& t, const Ref<Node>& node, uint32_t index);

/// Generated: installs every stage function.
void install_all();

}  // namespace rushlight::autograd
