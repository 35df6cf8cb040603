// Helpers that the sparse forms of operators share.
#pragma once

#include <vector>

#include "rushlight/ops/_sparse_values.h"
#include "rushlight/ops/_with_sparse_values.h"
#include "rushlight/sparse.h"

namespace rushlight::sparse {

/// A sparse tensor as coordinates and values, which have its history.
struct Coordinates {
    Tensor indices;  // int64 (sparse_dim, nnz)
    Tensor values;  // (nnz, dense dimensions...)
    std::vector<int64_t> size;
    bool coalesced = false;

    int64_t sparse_dim() const { return indices.size(0); }
    int64_t nnz() const { return indices.size(1); }
    int64_t ndim() const { return static_cast<int64_t>(size.size()); }
    /// The coordinates along one sparse dimension, (nnz).
    Tensor along(int64_t dim) const;
    /// The number of each position, counted row-major over the sparse dimensions, (nnz).
    Tensor positions() const;
    /// The number of positions over the sparse dimensions.
    int64_t num_positions() const;
};

inline Layout layout_of(const Tensor& t) { return sparse_parts(t).layout; }
/// Of any layout.
Coordinates coordinates(const Tensor& t);
/// The same, coalesced.
Coordinates coalesced(const Tensor& t);
/// A COO tensor; its history is that of the values.
Tensor from_coordinates(const Coordinates& c);
/// A COO tensor in the layout of another one, with blocks of the same size if their size divides it, else in COO.
Tensor in_layout(const Tensor& coo, const Tensor& like);
/// A tensor of the same positions with other values, of any dtype.
Tensor with_values(const Tensor& like, const Tensor& values);

/// The coordinates (dims, n) of positions that are counted row-major over `size`.
Tensor coordinates_of(const Tensor& positions, IntList size);

/// `dim` as a number in [0, ndim). Raises IndexError if it is out of range.
int64_t wrapped(const char* op, int64_t dim, int64_t ndim);
/// Raises if an in-place operator would have to be recorded: the history of a sparse tensor cannot be replaced.
void check_write(const char* op, const Tensor& t);
[[noreturn]] void refuse(const char* op, const Tensor& t, const char* what);

}  // namespace rushlight::sparse
