// Aliases of cat, and joining along a new dimension.
#include "bodies/joining.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {

Tensor cat(TensorList tensors, int64_t dim) { return ops::cat(tensors, dim); }

Tensor stack(TensorList tensors, int64_t dim) {
    RL_CHECK(!tensors.empty(), throw_runtime, "stack(tensors): expected a non-empty list of Tensors");
    std::vector<Tensor> raised;
    raised.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        IntList want = tensors[0].sizes(), have = tensors[i].sizes();
        RL_CHECK(
            std::equal(want.begin(), want.end(), have.begin(), have.end()), throw_runtime,
            "stack(tensors): all tensors need the same shape, but tensor %zu has %s and the first has %s", i,
            to_string(have).c_str(), to_string(want).c_str());
        raised.push_back(ops::unsqueeze(tensors[i], dim));
    }
    return ops::cat(raised, dim);
}

}  // namespace rushlight::composites
