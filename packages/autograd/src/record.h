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

/// An operator may return a view of a temporary tensor that it allocated and for which nothing is recorded. Such a
/// result becomes a tensor of its own, because otherwise a write to a view of the result would be recorded for the
/// temporary tensor.
inline void leave_temporary(const Tensor& result) {
    if (result.defined() && result.impl()->is_view()) result.impl()->leave_root();
}

/// Sets the history of results that are a list. The node stores the number and the shapes of the results.
void set_histories(const std::vector<Tensor>& results, const Ref<Node>& node,
                   std::vector<SavedShape>& shapes);

/// An operator without a formula. If an argument requires grad, an out= form raises an error. If the results are
/// integers or bools, this holds only for the arguments that the form writes. A functional form gives its results a
/// node that raises an error when it receives a gradient. In-place forms write bools, so their gradient and tangent are
/// zero. One boxed fallback handles all such operators.
struct Unrecorded {
    const char* name;
    uint64_t hash;
    /// For an out= form whose results are integers or bools: the number of arguments that it writes. Otherwise 0.
    uint8_t constant_outs;
};
void install_unrecorded(const Unrecorded* list);

/// Raises NotImplementedError, because there is no forward mode for the operator, or for one of its arguments.
[[noreturn]] void fail_no_jvp(const char* op, const char* argument = nullptr);

// For in-place view operators (t_, unsqueeze_), which change a tensor's geometry but no values. follows_root returns
// whether `t` is a view that derives its history from its root. If so, forget_history removes the cached history, so
// that it is derived again with the new geometry.
bool follows_root(const Tensor& t);
void forget_history(const Tensor& t);
/// If follows_root returns false for `t`: adds the in-place view operator as a node to the tensor's own history.
void rebase_geometry(const Tensor& t, const Ref<Node>& node, uint32_t index);

/// Generated: installs every stage function.
void install_all();

}  // namespace rushlight::autograd
