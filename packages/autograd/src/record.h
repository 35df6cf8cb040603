// What the generated stage functions share.
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

/// Results that come as a list: the node learns their number and shapes.
void set_histories(const std::vector<Tensor>& results, const Ref<Node>& node,
                   std::vector<SavedShape>& shapes);

/// Operators without a formula. When one of their arguments requires grad, an out= form raises, and the results of any
/// other get a node that raises when a gradient arrives. One boxed fallback serves all.
struct Unrecorded {
    const char* name;
    uint64_t hash;
};
void install_unrecorded(const Unrecorded* list);

[[noreturn]] void fail_no_jvp(const char* op);

/// Generated: installs every stage function.
void install_all();

}  // namespace rushlight::autograd
