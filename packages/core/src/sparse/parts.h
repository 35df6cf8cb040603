// Helpers that the sparse forms of operators share.
#pragma once

#include <vector>

#include "rushlight/ops/_sparse_values.h"
#include "rushlight/ops/_with_sparse_values.h"
#include "rushlight/sparse.h"

namespace rushlight::sparse {

/// The coordinates and values of a sparse tensor. The values have the tensor's autograd history.
struct Coordinates {
    Tensor indices;  // int64 (sparse_dim, nnz)
    Tensor values;  // (nnz, dense dimensions...)
    std::vector<int64_t> size;
    bool coalesced = false;

    int64_t sparse_dim() const { return indices.size(0); }
    int64_t nnz() const { return indices.size(1); }
    int64_t ndim() const { return static_cast<int64_t>(size.size()); }
    /// The coordinates along one sparse dimension, of shape (nnz).
    Tensor along(int64_t dim) const;
    /// The row-major index of each element over the sparse dimensions, of shape (nnz).
    Tensor positions() const;
    /// The number of possible positions: the product of the sizes of the sparse dimensions.
    int64_t num_positions() const;
};

inline Layout layout_of(const Tensor& t) { return sparse_parts(t).layout; }
/// Returns the coordinates of a tensor of any sparse layout.
Coordinates coordinates(const Tensor& t);
/// Returns the coordinates and values in sorted order, without duplicates.
Coordinates coalesced(const Tensor& t);
/// Returns a COO tensor with the autograd history of the values.
Tensor from_coordinates(const Coordinates& c);
/// Converts a COO tensor to the layout of `like`. If `like` has blocks, the result has blocks of the same size. If this
/// size does not divide the tensor's size, the result stays in COO.
Tensor in_layout(const Tensor& coo, const Tensor& like);
/// Returns a tensor with the positions of `like` and the given values, whose dtype may differ.
Tensor with_values(const Tensor& like, const Tensor& values);

/// Returns the coordinates, of shape (dims, n), of positions that are given as row-major indices over `size`.
Tensor coordinates_of(const Tensor& positions, IntList size);

/// Converts `dim`, which may be negative, to [0, ndim). Raises IndexError if it is out of range.
int64_t wrapped(const char* op, int64_t dim, int64_t ndim);
/// Raises an error if an in-place operator would have to be recorded, because the history of a sparse tensor cannot be
/// replaced.
void check_write(const char* op, const Tensor& t);
[[noreturn]] void refuse(const char* op, const Tensor& t, const char* what);

}  // namespace rushlight::sparse
