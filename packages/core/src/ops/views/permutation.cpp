#include "bodies/permutation.h"

namespace rushlight::views {

ViewSpec transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
    int a = wrap_dim("transpose", dim0, input.dim()), b = wrap_dim("transpose", dim1, input.dim());
    ViewSpec v(input);
    if (v.ndim == 0) return v;
    std::swap(v.sizes[a], v.sizes[b]);
    std::swap(v.strides[a], v.strides[b]);
    return v;
}

ViewSpec t(const Tensor& input) {
    RL_CHECK(
        input.dim() <= 2, throw_runtime,
        "t(): needs a tensor of at most 2 dimensions, got shape %s\nhint: use transpose(), or mT for batches",
        to_string(input.sizes()).c_str());
    return input.dim() < 2 ? ViewSpec(input) : transpose(input, 0, 1);
}

ViewSpec permute(const Tensor& input, IntList dims) {
    RL_CHECK(static_cast<int64_t>(dims.size()) == input.dim(), throw_runtime,
             "permute(dims): %s must name all %lld dimensions of shape %s", to_string(dims).c_str(),
             (long long)input.dim(), to_string(input.sizes()).c_str());
    ViewSpec v(input);
    uint64_t seen = 0;
    for (int i = 0; i < v.ndim; ++i) {
        int d = wrap_dim("permute", dims[i], input.dim());
        RL_CHECK(!(seen >> d & 1), throw_runtime, "permute(dims): %s names dimension %d twice",
                 to_string(dims).c_str(), d);
        seen |= uint64_t{1} << d;
        v.sizes[i] = input.sizes()[d];
        v.strides[i] = input.strides()[d];
    }
    return v;
}

ViewSpec movedim(const Tensor& input, IntList source, IntList destination) {
    RL_CHECK(source.size() == destination.size(), throw_runtime,
             "movedim(source, destination): %s and %s must have the same length", to_string(source).c_str(),
             to_string(destination).c_str());
    int n = static_cast<int>(input.dim());
    if (n == 0) {  // dimension 0 of a 0-d tensor may be listed any number of times
        for (IntList list : {source, destination})
            for (int64_t dim : list) wrap_dim("movedim", dim, 0);
        return ViewSpec(input);
    }
    int64_t from[kMaxDims];  // indexed by the position in the result; -1: not assigned yet
    std::fill_n(from, n, -1);
    uint64_t moved = 0;
    for (size_t i = 0; i < source.size(); ++i) {
        int s = wrap_dim("movedim", source[i], n), d = wrap_dim("movedim", destination[i], n);
        RL_CHECK(!(moved >> s & 1) && from[d] < 0, throw_runtime,
                 "movedim(source, destination): neither %s nor %s may name a dimension twice",
                 to_string(source).c_str(), to_string(destination).c_str());
        moved |= uint64_t{1} << s;
        from[d] = s;
    }
    int next = 0;
    for (int d = 0; d < n; ++d) {
        if (from[d] >= 0) continue;
        while (moved >> next & 1) ++next;
        from[d] = next++;
    }
    return permute(input, IntList(from, static_cast<size_t>(n)));
}

}  // namespace rushlight::views
