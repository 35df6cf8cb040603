#include "rushlight/sparse.h"

#include <algorithm>
#include <vector>

#include "sparse/stage.h"
#include "tensor/factory.h"

namespace rushlight {

const char* name(Layout layout) {
    switch (layout) {
        case Layout::Csr: return "torch.sparse_csr";
        case Layout::Csc: return "torch.sparse_csc";
        case Layout::Bsr: return "torch.sparse_bsr";
        case Layout::Bsc: return "torch.sparse_bsc";
        default: return "torch.sparse_coo";
    }
}

const char* layout_name(const Tensor& t) {
    return is_sparse(t) ? name(sparse_parts(t).layout) : "torch.strided";
}

Tensor make_sparse(IntList size, SparseParts parts) {
    install_sparse_stage();
    const DType dtype = parts.values.dtype();
    const Device device = parts.values.device();
    std::vector<int64_t> strides(size.size());
    int64_t step = 1;
    for (size_t d = size.size(); d-- > 0;) {
        strides[d] = step;
        RL_CHECK(!__builtin_mul_overflow(step, std::max<int64_t>(size[d], 1), &step), throw_runtime,
                 "shape %s is too large", to_string(size).c_str());
    }
    auto* owned = new SparseParts(std::move(parts));
    const ReleaseFn release = [](void* context, void*, size_t) { delete static_cast<SparseParts*>(context); };
    Ref<Storage> storage = Storage::wrap(nullptr, 0, device, StorageKind::Foreign, release, owned);
    Tensor t = make_without_memory(std::move(storage), size, strides, dtype);
    t.impl()->set_stage(Stage::Sparse, true);
    return t;
}

const SparseParts& sparse_parts(const Tensor& t) {
    return *static_cast<SparseParts*>(t.impl()->storage()->release_context());
}

void set_sparse_parts(const Tensor& t, SparseParts parts) {
    *static_cast<SparseParts*>(t.impl()->storage()->release_context()) = std::move(parts);
}

}  // namespace rushlight
