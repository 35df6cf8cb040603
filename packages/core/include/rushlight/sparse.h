// Sparse tensors: COO, and the compressed layouts CSR, CSC, BSR and BSC. Operators on them are computed by a stage of
// dispatch, in src/sparse/. See Note [Sparse tensors].
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

// Note [Sparse tensors]
// A sparse tensor is a TensorImpl of the full shape that carries Stage::Sparse. Its storage has no memory; it owns the
// parts: indices and values, which are plain tensors. So an alias or a detached tensor has the same parts, and code that
// asks for the address of elements finds none.
//
// Every operator that is given a sparse tensor is called at Stage::Sparse, which is above Dual and Autograd. There each
// operator that has a sparse form (src/sparse/) is computed by operators on the parts, and each of the others raises one
// error. Calls with plain tensors never execute any of this: their mask has no such bit.
//
// Three operators lead from a sparse tensor to its values and back, and have derivatives: `_sparse_values` (the values),
// `_with_sparse_values` (a tensor of other values at the same positions) and `_sparse_mask_values` (what a tensor, dense or
// sparse, has at these positions). The stage passes these operators on. Each sparse form is made of them and of
// operators on plain tensors, so its gradients of any order, in reverse and forward mode, follow from theirs. The
// history of a sparse tensor is its own, as of any tensor; the parts have none.

/// Coordinates; rows or columns compressed; rows or columns of blocks compressed.
enum class Layout : uint8_t { Coo, Csr, Csc, Bsr, Bsc };
/// Whether the columns are compressed, and rows are given by their numbers.
constexpr bool by_columns(Layout layout) { return layout == Layout::Csc || layout == Layout::Bsc; }
/// Whether each index is that of a block, which is a small plain matrix.
constexpr bool has_blocks(Layout layout) { return layout == Layout::Bsr || layout == Layout::Bsc; }
/// "torch.sparse_csr" and so on.
RL_API const char* name(Layout layout);

/// What a sparse tensor consists of; never written in place by operators on other tensors.
struct SparseParts {
    Layout layout = Layout::Coo;
    // COO: int64 (sparse dimensions, nnz). Compressed: where each row, column, or row or column of blocks begins, and at last
    // nnz, int64 or int32.
    Tensor indices;
    // Compressed: the column or row, or the column or row of blocks, of each value or block, (nnz), of the same dtype.
    Tensor plain;
    Tensor values;  // (nnz, dense dimensions...), or blocks (nnz, block rows, block columns); without history
    bool coalesced = false;  // COO: sorted, without duplicates
};

inline bool is_sparse(const Tensor& t) { return t.impl()->own_stages() & bit(Stage::Sparse); }
/// "torch.strided", "torch.sparse_coo" and so on.
RL_API const char* layout_name(const Tensor& t);

/// A sparse tensor of these parts, whose shapes are trusted; for values with a history there is ops::_with_sparse_values.
RL_API Tensor make_sparse(IntList size, SparseParts parts);
/// The parts of a sparse tensor.
RL_API const SparseParts& sparse_parts(const Tensor& t);
/// Gives a sparse tensor other parts of the same size: what in-place operators do.
RL_API void set_sparse_parts(const Tensor& t, SparseParts parts);

/// Raises RuntimeError unless the parts make a tensor of `size`: shapes, dtypes, devices and, with `values`, the indices
/// themselves. `op` is named in the error.
RL_API void check_sparse(const char* op, IntList size, const SparseParts& parts, bool values);

// Conversions, made of operators: their gradients are those of the operators.

/// Sorts the indices and adds the values of duplicates. Raises RuntimeError unless the layout is COO.
RL_API Tensor coalesce(const Tensor& t);
/// A dense tensor of the same values; a dense tensor returns itself.
RL_API Tensor to_dense(const Tensor& t);
/// COO, coalesced, with the elements, or rows over the first `sparse_dim` dimensions, that are not zero.
RL_API Tensor to_sparse_coo(const Tensor& t, int64_t sparse_dim);
/// A compressed layout; blocks are of the given size. RuntimeError unless `t` has two dimensions, which blocks must divide.
RL_API Tensor to_sparse_compressed(const Tensor& t, Layout layout, int64_t block_rows = 1,
                                   int64_t block_columns = 1);

}  // namespace rushlight
