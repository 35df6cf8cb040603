// The stage of dispatch that computes with sparse tensors. See Note [Sparse tensors].
#pragma once

#include "rushlight/dispatch.h"

namespace rushlight {

/// Installs the stage. Called when the first sparse tensor is made.
void install_sparse_stage();

namespace sparse {

/// Gives `form`, an implementation for sparse tensors, the signature of a stage's function. The first two arguments of
/// this signature, the operator and the mask, are ignored.
template <auto form>
struct AtStage;
template <class R, class... A, R (*form)(A...)>
struct AtStage<form> {
    static R call(const Operator&, StageMask, A... args) { return form(args...); }
};

void install(const char* name, void* function);

void install_structure();
void install_elementwise();
void install_sums();
void install_products();
void install_selection();

}  // namespace sparse
}  // namespace rushlight

// RL_SPARSE(add, "add", add) makes `form` the implementation of operator "add" for sparse tensors. It compiles only if
// `form` has the same parameters as ops::add.
#define RL_SPARSE(operation, name, form)                               \
    (static_cast<void>(static_cast<decltype(&form)>(&ops::operation)), \
     install(name, reinterpret_cast<void*>(&AtStage<&form>::call)))
