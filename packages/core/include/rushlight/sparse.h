// Sparse tensors: COO, and the compressed layouts CSR, CSC, BSR and BSC. Operators on them are computed by a stage of
// dispatch, in src/sparse/. See Note [Sparse tensors].
#pragma once

#include "rushlight/tensor.h"

namespace rushlight {

// Note [Sparse tensors]
// A sparse tensor is a TensorImpl of the full shape with the stage Stage::Sparse. Its storage has no memory; instead
// the storage owns the parts, indices and values, which are plain tensors. An alias of a sparse tensor or a detached
// tensor therefore has the same parts, and its address of elements is null.
//
// Every operator call with a sparse tensor is handled at Stage::Sparse, which comes before Dual and Autograd. An
// operator that has a sparse form (src/sparse/) is computed there by operators on the parts. All other operators raise
// the same error. Calls with plain tensors never reach this code, because their mask does not contain the bit of
// Stage::Sparse.
//
// Three operators convert between a sparse tensor and its values, and have derivatives. `_sparse_values` returns the
// values. `_with_sparse_values` returns a sparse tensor with other values at the same positions. `_sparse_mask_values`
// returns the elements of a dense or sparse tensor at the positions of a sparse tensor. The stage passes these three
// operators on to autograd. Each sparse form calls only these operators and operators on plain tensors. The gradients
// of a sparse form, of any order and in reverse and forward mode, follow from the derivatives of these operators. Like
// any tensor, a sparse tensor can have a history of recorded operators. Its parts have no history.

/// Coordinates (COO); compressed rows or columns (CSR, CSC); compressed rows or columns of blocks (BSR, BSC).
enum class Layout : uint8_t { Coo, Csr, Csc, Bsr, Bsc };
/// Whether the columns are compressed and the row of each value is stored.
constexpr bool by_columns(Layout layout) { return layout == Layout::Csc || layout == Layout::Bsc; }
/// Whether the stored values are blocks (small dense matrices), so that each index is the index of a block.
constexpr bool has_blocks(Layout layout) { return layout == Layout::Bsr || layout == Layout::Bsc; }
/// "torch.sparse_csr" and so on.
RL_API const char* name(Layout layout);

/// The parts of a sparse tensor. Operators on other tensors never write to the elements of these parts.
struct SparseParts {
    Layout layout = Layout::Coo;
    // COO: int64, of shape (sparse dimensions, nnz). Compressed layouts: the position at which each row or column (or
    // row or column of blocks) begins, followed by nnz; int64 or int32.
    Tensor indices;
    // Compressed layouts: the column or row (or column or row of blocks) of each value or block, of shape (nnz), of the
    // dtype of `indices`.
    Tensor plain;
    // Shape (nnz, dense dimensions...), or (nnz, block rows, block columns) for blocks. Has no autograd history.
    Tensor values;
    // COO: whether the indices are sorted and without duplicates.
    bool coalesced = false;
};

inline bool is_sparse(const Tensor& t) { return t.impl()->own_stages() & bit(Stage::Sparse); }
/// "torch.strided", "torch.sparse_coo" and so on.
RL_API const char* layout_name(const Tensor& t);

/// Returns a sparse tensor made of these parts, without checking their shapes. The values must have no autograd
/// history; for values that have one, use ops::_with_sparse_values.
RL_API Tensor make_sparse(IntList size, SparseParts parts);
/// The parts of a sparse tensor.
RL_API const SparseParts& sparse_parts(const Tensor& t);
/// Replaces the parts of a sparse tensor. The tensor's size stays the same. In-place operators use this.
RL_API void set_sparse_parts(const Tensor& t, SparseParts parts);
/// Gives the sparse tensor `t` the parts, the shape and the dtype of `other`. Other tensors that share the parts of `t`
/// do not change. Raises NotImplementedError if the write would have to be recorded; `op` is named in errors.
RL_API void assign_sparse(const char* op, const Tensor& t, const Tensor& other);
/// Returns a sparse tensor of zeros, without stored values. Raises NotImplementedError for layouts with blocks.
RL_API Tensor empty_sparse(const char* op, Layout layout, IntList size, DType dtype, Device device);

/// Raises RuntimeError unless `parts` describe a valid sparse tensor of the size `size`. Checks shapes, dtypes, devices
/// and, if `values` is true, the values of the indices. The error names `op`.
RL_API void check_sparse(const char* op, IntList size, const SparseParts& parts, bool values);

// Conversions. They are differentiable, because they call operators.

/// Sorts the indices, and sums the values that have the same indices. Raises RuntimeError unless the layout is COO.
RL_API Tensor coalesce(const Tensor& t);
/// Returns a dense tensor with the same values; a dense tensor is returned unchanged.
RL_API Tensor to_dense(const Tensor& t);
/// Returns a coalesced COO tensor of the nonzero elements. If `sparse_dim` is less than the number of dimensions, the
/// values of the result are slices of `t` instead: each value is a slice `t[i, j, ...]`, with `sparse_dim` indices,
/// that is not all zero.
RL_API Tensor to_sparse_coo(const Tensor& t, int64_t sparse_dim);
/// Returns the tensor in a compressed layout; BSR and BSC have blocks of the given size. Raises RuntimeError unless `t`
/// has two dimensions and the sizes of a block divide the sizes of `t`.
RL_API Tensor to_sparse_compressed(const Tensor& t, Layout layout, int64_t block_rows = 1,
                                   int64_t block_columns = 1);

}  // namespace rushlight
