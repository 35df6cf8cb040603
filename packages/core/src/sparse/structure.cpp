// The structure of sparse tensors: layouts, copies, the order of dimensions, and checks of the parts.
#include <algorithm>
#include <numeric>

#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/_unique_elements.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/any.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/bitwise_and.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diff.h"
#include "rushlight/ops/empty_like.h"
#include "rushlight/ops/eq.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/le.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/new_empty.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/remainder.h"
#include "rushlight/ops/repeat_interleave.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/searchsorted.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/swapaxes_.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/t_.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/transpose_.h"
#include "rushlight/ops/zero_.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/ops/zeros_like.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight {
namespace {

int64_t number(const Tensor& t) { return *ops::to(t, Device()).data<int64_t>(); }
bool truth(const Tensor& t) { return *ops::to(t, Device()).data<bool>(); }

Tensor wide(const Tensor& t) { return t.dtype() == DType::Int64 ? t : ops::_to_copy(t, DType::Int64); }

void check_range(const char* op, const char* what, const Tensor& numbers, int64_t size) {
    if (numbers.numel() == 0) return;
    const int64_t least = number(ops::amin(wide(numbers))), largest = number(ops::amax(wide(numbers)));
    RL_CHECK(least >= 0, throw_runtime, "%s(%s): found negative index %lld", op, what, (long long)least);
    RL_CHECK(largest < size, throw_runtime, "%s(%s): index %lld is out of range for size %lld", op, what,
             (long long)largest, (long long)size);
}

void check_coo(const char* op, IntList size, const SparseParts& parts, bool values) {
    const Tensor& indices = parts.indices;
    RL_CHECK(indices.dim() == 2, throw_runtime, "%s: indices must be sparse_dim x nnz, but got: %s", op,
             to_string(indices.sizes()).c_str());
    RL_CHECK(indices.dtype() == DType::Int64, throw_runtime, "%s(indices): must be an int64 tensor, got %s",
             op, name(indices.dtype()));
    RL_CHECK(parts.values.dim() > 0, throw_runtime,
             "%s: values must have at least one dimension, got a 0-d tensor", op);
    const int64_t sparse_dim = indices.size(0), dense_dim = parts.values.dim() - 1;
    RL_CHECK(
        static_cast<int64_t>(size.size()) == sparse_dim + dense_dim, throw_runtime,
        "%s(size): 'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = %zu, sparse_dim = %lld, "
        "dense_dim = %lld",
        op, size.size(), (long long)sparse_dim, (long long)dense_dim);
    RL_CHECK(
        indices.size(1) == parts.values.size(0), throw_runtime,
        "%s: indices and values must have same nnz, but got nnz from indices: %lld, nnz from values: %lld",
        op, (long long)indices.size(1), (long long)parts.values.size(0));
    RL_CHECK(
        std::ranges::equal(size.subspan(static_cast<size_t>(sparse_dim)), parts.values.sizes().subspan(1)),
        throw_runtime, "%s: values has incorrect size, expected dimensions %s after the first, got %s", op,
        to_string(size.subspan(static_cast<size_t>(sparse_dim))).c_str(),
        to_string(parts.values.sizes()).c_str());
    if (!values) return;
    for (int64_t d = 0; d < sparse_dim; ++d)
        check_range(op, "indices", ops::select(indices, 0, d), size[static_cast<size_t>(d)]);
    if (!parts.coalesced || indices.size(1) < 2) return;
    sparse::Coordinates c{indices, parts.values, {size.begin(), size.end()}, true};
    RL_CHECK(number(ops::amin(ops::diff(c.positions()))) > 0, throw_runtime,
             "%s(is_coalesced): the indices are not sorted, or an index occurs twice", op);
}

void check_compressed(const char* op, IntList size, const SparseParts& parts, bool values) {
    const Tensor &compressed = parts.indices, &plain = parts.plain;
    const bool columns = by_columns(parts.layout), blocks = has_blocks(parts.layout);
    // The names of the arguments, and the names of the sizes of the compressed and of the other dimension.
    const char *first = columns ? "ccol_indices" : "crow_indices",
               *second = columns ? "row_indices" : "col_indices";
    const char *label = columns ? "ncols" : "nrows", *others = columns ? "nrows" : "ncols";
    RL_CHECK(
        size.size() == 2 && compressed.dim() == 1 && plain.dim() == 1 &&
            parts.values.dim() == (blocks ? 3 : 1),
        throw_not_implemented,
        "%s: the tensor must be a matrix, %s and %s must have one dimension, and values must have %s; got "
        "size %s and shapes %s, %s and %s",
        op, first, second, blocks ? "three" : "one dimension", to_string(size).c_str(),
        to_string(compressed.sizes()).c_str(), to_string(plain.sizes()).c_str(),
        to_string(parts.values.sizes()).c_str());
    for (const Tensor* t : {&compressed, &plain})
        RL_CHECK(t->dtype() == DType::Int64 || t->dtype() == DType::Int32, throw_runtime,
                 "%s: %s and %s must be int32 or int64, got %s", op, first, second, name(t->dtype()));
    RL_CHECK(compressed.dtype() == plain.dtype(), throw_runtime,
             "%s: %s and %s must have one dtype, got %s and %s", op, first, second, name(compressed.dtype()),
             name(plain.dtype()));
    int64_t sizes[] = {size[0], size[1]};
    for (int d = 0; blocks && d < 2; ++d) {
        const int64_t block = parts.values.size(d + 1);
        RL_CHECK(block > 0 && size[static_cast<size_t>(d)] % block == 0, throw_runtime,
                 "%s(values): blocks of %s do not divide a matrix of size %s", op,
                 to_string(parts.values.sizes().subspan(1)).c_str(), to_string(size).c_str());
        sizes[d] /= block;
    }
    const int64_t num_compressed = sizes[columns], num_others = sizes[!columns], nnz = parts.values.size(0);
    RL_CHECK(compressed.numel() == num_compressed + 1, throw_runtime,
             "%s(%s): needs %s + 1 = %lld numbers, got %lld", op, first, label, (long long)num_compressed + 1,
             (long long)compressed.numel());
    RL_CHECK(plain.numel() == nnz, throw_runtime,
             "%s: %s and values must have same nnz, but got %lld and %lld", op, second,
             (long long)plain.numel(), (long long)nnz);
    if (!values) return;
    const Tensor from = wide(compressed), to = wide(plain);
    RL_CHECK(number(ops::select(from, 0, 0)) == 0, throw_runtime, "%s: `%s[..., 0] == 0` is not satisfied",
             op, first);
    RL_CHECK(number(ops::select(from, 0, -1)) == nnz, throw_runtime,
             "%s: `%s[..., -1] == nnz` is not satisfied", op, first);
    const Tensor counts = ops::diff(from);
    RL_CHECK(
        num_compressed == 0 || (number(ops::amin(counts)) >= 0 && number(ops::amax(counts)) <= num_others),
        throw_runtime, "%s: `0 <= %s[..., 1:] - %s[..., :-1] <= %s` is not satisfied", op, first, first,
        others);
    check_range(op, second, plain, num_others);
    if (nnz < 2) return;
    // Within a row or column the indices must increase. Two successive indices that do not increase must belong to
    // different rows or columns.
    const Tensor owner = ops::repeat_interleave(
        ops::arange(Scalar(num_compressed), DType::Int64, compressed.device()), counts, 0, nnz);
    const Tensor same = ops::eq(ops::diff(owner), Scalar(0)), falls = ops::le(ops::diff(to), Scalar(0));
    RL_CHECK(!truth(ops::any(ops::bitwise_and(same, falls))), throw_runtime,
             "%s: `%s[..., %s[..., i - 1]:%s[..., i]] for all i = 1, ..., %s are sorted "
             "and distinct along the last dimension values` is not satisfied.",
             op, second, first, first, label);
}

}  // namespace

void check_sparse(const char* op, IntList size, const SparseParts& parts, bool values) {
    for (int64_t n : size)
        RL_CHECK(n >= 0, throw_runtime, "%s(size): must not be negative, got %s", op,
                 to_string(size).c_str());
    for (const Tensor* t : {&parts.indices, &parts.plain, &parts.values}) {
        if (!t->defined()) continue;
        RL_CHECK(!is_sparse(*t), throw_type, "%s: indices and values must be dense tensors, got layout %s",
                 op, layout_name(*t));
        RL_CHECK(t->device() == parts.values.device(), throw_runtime,
                 "%s: device of indices (%s) must match device of values (%s)", op, name(t->device()).c_str(),
                 name(parts.values.device()).c_str());
    }
    if (parts.values.device().type == DeviceType::Meta) values = false;
    if (parts.layout == Layout::Coo) check_coo(op, size, parts, values);
    else check_compressed(op, size, parts, values);
}

Tensor empty_sparse(const char* op, Layout layout, IntList size, DType dtype, Device device) {
    RL_CHECK(!has_blocks(layout), throw_not_implemented, "%s(layout): must not have blocks, got %s", op,
             name(layout));
    SparseParts parts{layout, Tensor(), Tensor(), ops::zeros(kInts<0>, dtype, device), true};
    if (layout == Layout::Coo) {
        const int64_t none[] = {static_cast<int64_t>(size.size()), 0};
        parts.indices = ops::zeros(none, DType::Int64, device);
    } else {
        RL_CHECK(size.size() == 2, throw_not_implemented,
                 "%s(size): must have two dimensions for layout %s, got %s", op, name(layout),
                 to_string(size).c_str());
        const int64_t count[] = {size[by_columns(layout)] + 1};
        parts.indices = ops::zeros(count, DType::Int64, device);
        parts.plain = ops::zeros(kInts<0>, DType::Int64, device);
    }
    check_sparse(op, size, parts, false);
    return make_sparse(size, std::move(parts));
}

Tensor to_dense(const Tensor& t) {
    if (!is_sparse(t)) return t;
    const sparse::Coordinates c = sparse::coordinates(t);
    std::vector<int64_t> flat = c.values.shape();
    flat[0] = c.num_positions();
    const Tensor zeros = ops::zeros(flat, t.dtype(), t.device());
    return ops::reshape(ops::index_add(zeros, 0, c.positions(), c.values), c.size);
}

Tensor to_sparse_coo(const Tensor& t, int64_t sparse_dim) {
    if (is_sparse(t)) {
        const sparse::Coordinates c = sparse::coordinates(t);
        RL_CHECK(sparse_dim == c.sparse_dim(), throw_not_implemented,
                 "to_sparse(sparse_dim): a sparse tensor with %lld sparse dimensions cannot be converted to "
                 "%lld sparse dimensions",
                 (long long)c.sparse_dim(), (long long)sparse_dim);
        return sparse_parts(t).layout == Layout::Coo ? t : sparse::from_coordinates(c);
    }
    const int64_t least = std::min<int64_t>(t.dim(), 1);
    RL_CHECK(sparse_dim >= least && sparse_dim <= t.dim(), throw_runtime,
             "to_sparse(sparse_dim): must be in [%lld, %lld], got %lld", (long long)least, (long long)t.dim(),
             (long long)sparse_dim);
    const auto front = static_cast<size_t>(sparse_dim);
    std::vector<int64_t> flat{1};
    for (size_t d = 0; d < front; ++d) flat[0] *= t.sizes()[d];
    flat.insert(flat.end(), t.sizes().begin() + sparse_dim, t.sizes().end());
    const Tensor rows = ops::reshape(t, flat), given = ops::ne(ops::detach(rows), Scalar(0));
    std::vector<int64_t> rest(flat.size() - 1);
    std::iota(rest.begin(), rest.end(), 1);
    const Tensor positions =
        ops::reshape(ops::nonzero(rest.empty() ? given : ops::any(given, IntList(rest))), kInts<-1>);
    return sparse::from_coordinates({sparse::coordinates_of(positions, t.sizes().first(front)),
                                     ops::index_select(rows, 0, positions), t.shape(), true});
}

namespace {

// Returns the matrix as COO over its rows and columns of blocks, with the blocks as dense dimensions; without `blocks`,
// over its rows and columns. Columns come first if `columns` is true.
Tensor of_blocks(const Tensor& t, bool columns, bool blocks, int64_t block_rows, int64_t block_columns) {
    const int64_t rows = t.size(0) / block_rows, cols = t.size(1) / block_columns;
    if (!is_sparse(t)) {
        const int64_t split[] = {rows, block_rows, cols, block_columns}, order[] = {0, 2, 1, 3};
        const Tensor x = blocks ? ops::permute(ops::reshape(t, split), order) : t;
        return to_sparse_coo(columns ? ops::transpose(x, 0, 1) : x, 2);
    }
    const sparse::Coordinates c = sparse::coordinates(t);
    Tensor row = c.along(0), col = c.along(1);
    if (!blocks) {
        if (!columns) return coalesce(sparse::from_coordinates(c));
        const Tensor swapped[] = {col, row};
        return coalesce(sparse::from_coordinates({ops::stack(swapped, 0), c.values, {cols, rows}, false}));
    }
    const Scalar high(block_rows), wide(block_columns);
    const Tensor inner = ops::add(ops::mul(ops::remainder(row, high), wide), ops::remainder(col, wide));
    row = ops::floor_divide(row, high);
    col = ops::floor_divide(col, wide);
    const Tensor indices[] = {columns ? col : row, columns ? row : col};
    const int64_t grid[] = {columns ? cols : rows, columns ? rows : cols}, area = block_rows * block_columns;
    const sparse::Coordinates positions{ops::stack(indices, 0), c.values, {grid[0], grid[1]}, false};
    const auto [unique, inverse, counts] = ops::_unique_elements(positions.positions(), false, true, false);
    const int64_t all[] = {unique.numel() * area}, shape[] = {unique.numel(), block_rows, block_columns};
    const Tensor at = ops::add(ops::mul(inverse, Scalar(area)), inner);
    const Tensor values = ops::index_add(ops::zeros(all, t.dtype(), t.device()), 0, at, c.values);
    return sparse::from_coordinates({sparse::coordinates_of(unique, grid),
                                     ops::reshape(values, shape),
                                     {grid[0], grid[1], block_rows, block_columns},
                                     true});
}

}  // namespace

Tensor to_sparse_compressed(const Tensor& t, Layout layout, int64_t block_rows, int64_t block_columns) {
    if (is_sparse(t) && sparse_parts(t).layout == layout) {
        const Tensor& values = sparse_parts(t).values;
        if (!has_blocks(layout) || (values.size(1) == block_rows && values.size(2) == block_columns))
            return t;
    }
    RL_CHECK(t.dim() == 2 && (!is_sparse(t) || sparse::coordinates(t).sparse_dim() == 2),
             throw_not_implemented, "%s: needs a matrix with no dense dimensions, got shape %s", name(layout),
             to_string(t.sizes()).c_str());
    RL_CHECK(
        block_rows > 0 && block_columns > 0 && t.size(0) % block_rows == 0 && t.size(1) % block_columns == 0,
        throw_runtime, "%s(blocksize): blocks of (%lld, %lld) do not divide a matrix of size %s",
        name(layout), (long long)block_rows, (long long)block_columns, to_string(t.sizes()).c_str());
    const bool columns = by_columns(layout);
    const sparse::Coordinates c =
        sparse::coordinates(of_blocks(t, columns, has_blocks(layout), block_rows, block_columns));
    const Tensor bounds = ops::arange(Scalar(c.size[0] + 1), DType::Int64, t.device());
    const Tensor compressed = ops::searchsorted(c.along(0), bounds), plain = ops::clone(c.along(1));
    return sparse::with_values(
        make_sparse(t.sizes(), {layout, compressed, plain, make_alias(c.values), true}), c.values);
}

namespace sparse {
namespace {

Tensor clone(const Tensor& t, std::optional<std::string_view>) {
    SparseParts parts = sparse_parts(t);
    parts.indices = ops::clone(parts.indices);
    if (parts.plain.defined()) parts.plain = ops::clone(parts.plain);
    return with_values(make_sparse(t.sizes(), std::move(parts)), ops::clone(ops::_sparse_values(t)));
}

Tensor to_copy(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking) {
    SparseParts parts = sparse_parts(t);
    if (device && *device != t.device()) {
        parts.indices = ops::_to_copy(parts.indices, std::nullopt, device, non_blocking);
        if (parts.plain.defined())
            parts.plain = ops::_to_copy(parts.plain, std::nullopt, device, non_blocking);
    }
    const Tensor values = ops::_to_copy(ops::_sparse_values(t), dtype, device, non_blocking);
    parts.values = make_alias(values);
    return with_values(make_sparse(t.sizes(), std::move(parts)), values);
}

// Returns the parts of a tensor like `t`, but without values.
SparseParts nothing(const Tensor& t, DType dtype, Device device) {
    SparseParts parts = sparse_parts(t);
    std::vector<int64_t> shape = parts.values.shape();
    shape[0] = 0;
    parts.values = ops::zeros(shape, dtype, device);
    if (parts.layout == Layout::Coo) {
        const int64_t none[] = {parts.indices.size(0), 0};
        parts.indices = ops::zeros(none, DType::Int64, device);
    } else {
        parts.plain = ops::zeros(kInts<0>, parts.plain.dtype(), device);
        parts.indices = ops::zeros(parts.indices.sizes(), parts.indices.dtype(), device);
    }
    parts.coalesced = true;
    return parts;
}

Tensor zeros_like(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device,
                  bool requires_grad, std::optional<std::string_view>) {
    Tensor result =
        make_sparse(t.sizes(), nothing(t, dtype.value_or(t.dtype()), device.value_or(t.device())));
    if (requires_grad) result.set_requires_grad(true);
    return result;
}

// Returns a tensor of another shape without values, in the layout of `t`.
Tensor new_zeros(const Tensor& t, IntList size, std::optional<DType> dtype, std::optional<Device> device,
                 bool requires_grad) {
    Tensor result =
        empty_sparse("new_zeros", layout_of(t), size, dtype.value_or(t.dtype()), device.value_or(t.device()));
    if (requires_grad) result.set_requires_grad(true);
    return result;
}

Tensor zero_(const Tensor& t) {
    check_write("zero_", t);
    set_sparse_parts(t, nothing(t, t.dtype(), t.device()));
    return t;
}

Tensor copy_(const Tensor& to, const Tensor& from, bool non_blocking) {
    if (!is_sparse(to)) return ops::copy_(to, to_dense(from), non_blocking);
    RL_CHECK(
        is_sparse(from) && layout_of(from) == layout_of(to) && std::ranges::equal(to.sizes(), from.sizes()),
        throw_runtime, "copy_(other): needs layout %s and shape %s, got %s and %s", layout_name(to),
        to_string(to.sizes()).c_str(), layout_name(from), to_string(from.sizes()).c_str());
    check_write("copy_", to);
    RL_CHECK(!grad_mode() || !from.requires_grad(), throw_not_implemented,
             "copy_(other): must not require grad if it is sparse, because the copy is not recorded\n"
             "hint: use clone()");
    set_sparse_parts(to, sparse_parts(ops::_to_copy(from, to.dtype(), to.device(), non_blocking)));
    return to;
}

// Transposes a matrix. A layout that is compressed by rows becomes the corresponding layout that is compressed by
// columns, and vice versa.
Tensor swapped(const Tensor& t) {
    SparseParts parts = sparse_parts(t);
    switch (parts.layout) {
        case Layout::Csr: parts.layout = Layout::Csc; break;
        case Layout::Csc: parts.layout = Layout::Csr; break;
        case Layout::Bsr: parts.layout = Layout::Bsc; break;
        default: parts.layout = Layout::Bsr;
    }
    const Tensor given = ops::_sparse_values(t);
    const Tensor values = has_blocks(parts.layout) ? ops::transpose(given, 1, 2) : given;
    parts.values = make_alias(values);
    const int64_t size[] = {t.size(1), t.size(0)};
    return with_values(make_sparse(size, std::move(parts)), values);
}

Tensor permute(const Tensor& t, IntList dims) {
    if (layout_of(t) != Layout::Coo && dims.size() == 2) {
        const int64_t first = wrapped("permute", dims[0], 2), second = wrapped("permute", dims[1], 2);
        if (first == 1 && second == 0) return swapped(t);
        if (first == 0 && second == 1) return with_values(t, ops::_sparse_values(t));
    }
    const Coordinates c = coordinates(t);
    RL_CHECK(static_cast<int64_t>(dims.size()) == c.ndim(), throw_runtime,
             "permute(dims): needs %lld dimensions, got %zu", (long long)c.ndim(), dims.size());
    std::vector<int64_t> front, back{0}, size;
    std::vector<bool> seen(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t d = wrapped("permute", dims[i], c.ndim());
        RL_CHECK(!seen[static_cast<size_t>(d)], throw_runtime, "permute(dims): dimension %lld is given twice",
                 (long long)d);
        seen[static_cast<size_t>(d)] = true;
        const bool is_front = d < c.sparse_dim();
        RL_CHECK(is_front == (static_cast<int64_t>(i) < c.sparse_dim()), throw_not_implemented,
                 "permute(dims): a sparse dimension cannot be exchanged with a dense one");
        (is_front ? front : back).push_back(is_front ? d : d - c.sparse_dim() + 1);
        size.push_back(c.size[static_cast<size_t>(d)]);
    }
    const bool moved = !std::is_sorted(front.begin(), front.end());
    std::vector<Tensor> rows;
    for (int64_t d : front) rows.push_back(c.along(d));
    const Tensor indices = moved ? ops::stack(rows, 0) : c.indices;
    return from_coordinates({indices, ops::permute(c.values, back), std::move(size), c.coalesced && !moved});
}

Tensor transpose(const Tensor& t, int64_t dim0, int64_t dim1) {
    const int64_t n = std::max<int64_t>(t.dim(), 1);  // 0 and -1 are accepted for a tensor without dimensions
    std::vector<int64_t> dims(static_cast<size_t>(n));
    std::iota(dims.begin(), dims.end(), 0);
    std::swap(dims[static_cast<size_t>(wrapped("transpose", dim0, n))],
              dims[static_cast<size_t>(wrapped("transpose", dim1, n))]);
    dims.resize(static_cast<size_t>(t.dim()));
    return permute(t, dims);
}

Tensor transpose_(const Tensor& t, int64_t dim0, int64_t dim1) {
    assign_sparse("transpose_", t, transpose(t, dim0, dim1));
    return t;
}

Tensor transposed(const Tensor& t) {
    RL_CHECK(t.dim() <= 2, throw_runtime, "t(input): needs at most 2 dimensions, got %lld",
             (long long)t.dim());
    return t.dim() == 2 ? transpose(t, 0, 1) : t;
}

Tensor transposed_(const Tensor& t) {
    assign_sparse("t_", t, transposed(t));
    return t;
}

}  // namespace

void install_structure() {
    RL_SPARSE(clone, "clone", clone);
    RL_SPARSE(_to_copy, "_to_copy", to_copy);
    RL_SPARSE(zeros_like, "zeros_like", zeros_like);
    RL_SPARSE(empty_like, "empty_like", zeros_like);
    RL_SPARSE(zero_, "zero_", zero_);
    RL_SPARSE(copy_, "copy_", copy_);
    RL_SPARSE(permute, "permute", permute);
    RL_SPARSE(transpose, "transpose", transpose);
    RL_SPARSE(transpose_, "transpose_", transpose_);
    RL_SPARSE(swapaxes_, "swapaxes_", transpose_);
    RL_SPARSE(t, "t", transposed);
    RL_SPARSE(t_, "t_", transposed_);
    RL_SPARSE(new_zeros, "new_zeros", new_zeros);
    RL_SPARSE(new_empty, "new_empty", new_zeros);
}

}  // namespace sparse
}  // namespace rushlight
