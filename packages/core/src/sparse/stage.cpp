#include "sparse/stage.h"

#include <mutex>

#include "rushlight/sparse.h"
#include "rushlight/value.h"

namespace rushlight {
namespace {

// Operators that the stage passes on: operators that convert a sparse tensor to its values and back, operators that
// read only the dtype, device or history, and composites that only call operators with a sparse form.
constexpr const char* kHandedOn[] = {"_sparse_values",
                                     "_with_sparse_values",
                                     "_sparse_mask_values",
                                     "_sparse_mask_backward",
                                     "_sparse_values_backward",
                                     "detach",
                                     "detach_",
                                     "new_ones",
                                     "new_full",
                                     "stack",
                                     "hstack",
                                     "vstack",
                                     "positive",
                                     "to",
                                     "to.dtype",
                                     "to.other",
                                     "type_as",
                                     "cpu",
                                     "cuda",
                                     "float",
                                     "double",
                                     "half",
                                     "bfloat16",
                                     "cfloat",
                                     "cdouble",
                                     "long",
                                     "int",
                                     "short",
                                     "char",
                                     "byte",
                                     "bool"};

const Tensor* sparse_in(const Stack& stack) {
    for (const Value& v : stack) {
        if (auto* t = v.as<Tensor>(); t && t->defined() && is_sparse(*t)) return t;
        if (auto* list = v.as<std::vector<Tensor>>())
            for (const Tensor& t : *list)
                if (t.defined() && is_sparse(t)) return &t;
    }
    return nullptr;
}

void refuse(const Operator& op, StageMask, Stack& stack) {
    const Tensor* t = sparse_in(stack);
    throw_not_implemented(
        "%s: this operator is not implemented for tensors of layout %s\nhint: use to_dense(), or compute with values()",
        op.name, t ? layout_name(*t) : "torch.sparse_coo");
}

}  // namespace

void sparse::install(const char* name, void* function) {
    const Operator* op = find_operator(name);
    RL_CHECK(op, throw_runtime, "sparse tensors: core has no operator '%s'", name);
    install_stage(Stage::Sparse, name, op->hash, function);
}

void install_sparse_stage() {
    static std::once_flag once;
    std::call_once(once, [] {
        sparse::install_structure();
        sparse::install_elementwise();
        sparse::install_sums();
        sparse::install_products();
        sparse::install_selection();
        install_fallback(Stage::Sparse, refuse);
        for (const char* name : kHandedOn) sparse::install(name, nullptr);
    });
}

}  // namespace rushlight
