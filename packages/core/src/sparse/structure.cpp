// What sparse tensors are made of: layouts, copies, the order of dimensions, and the checks of parts.
#include <algorithm>
#include <numeric>

#include "ops/host_values.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
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
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/index_select.h"
#include "rushlight/ops/le.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/nonzero.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/repeat_interleave.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/searchsorted.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/zero_.h"
#include "rushlight/ops/zeros.h"
#include "rushlight/ops/zeros_like.h"
#include "sparse/parts.h"
#include "sparse/stage.h"

namespace rushlight {
namespace {

int64_t number(const Tensor& t) { return *on_host(t).data<int64_t>(); }
bool truth(const Tensor& t) { return *on_host(t).data<bool>(); }

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
    RL_CHECK(indices.size(0) > 0 && parts.values.dim() > 0, throw_not_implemented,
             "%s: needs at least one sparse dimension", op);
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
    RL_CHECK(number(ops::amin(ops::diff(c.places()))) > 0, throw_runtime,
             "%s(is_coalesced): the indices are not sorted, or one occurs twice", op);
}

void check_csr(const char* op, IntList size, const SparseParts& parts, bool values) {
    const Tensor &crow = parts.indices, &columns = parts.columns;
    RL_CHECK(
        size.size() == 2 && crow.dim() == 1 && columns.dim() == 1 && parts.values.dim() == 1,
        throw_not_implemented,
        "%s: needs a matrix, and crow_indices, col_indices and values of one dimension; got size %s and shapes "
        "%s, %s and %s",
        op, to_string(size).c_str(), to_string(crow.sizes()).c_str(), to_string(columns.sizes()).c_str(),
        to_string(parts.values.sizes()).c_str());
    for (const Tensor* t : {&crow, &columns})
        RL_CHECK(t->dtype() == DType::Int64 || t->dtype() == DType::Int32, throw_runtime,
                 "%s: crow_indices and col_indices must be int32 or int64, got %s", op, name(t->dtype()));
    RL_CHECK(crow.dtype() == columns.dtype(), throw_runtime,
             "%s: crow_indices and col_indices must have one dtype, got %s and %s", op, name(crow.dtype()),
             name(columns.dtype()));
    RL_CHECK(crow.numel() == size[0] + 1, throw_runtime,
             "%s(crow_indices): needs nrows + 1 = %lld numbers, got %lld", op, (long long)size[0] + 1,
             (long long)crow.numel());
    const int64_t nnz = parts.values.numel();
    RL_CHECK(columns.numel() == nnz, throw_runtime,
             "%s: col_indices and values must have same nnz, but got %lld and %lld", op,
             (long long)columns.numel(), (long long)nnz);
    if (!values) return;
    const Tensor from = wide(crow), to = wide(columns);
    RL_CHECK(number(ops::select(from, 0, 0)) == 0, throw_runtime,
             "%s: `crow_indices[..., 0] == 0` is not satisfied", op);
    RL_CHECK(number(ops::select(from, 0, -1)) == nnz, throw_runtime,
             "%s: `crow_indices[..., -1] == nnz` is not satisfied", op);
    const Tensor counts = ops::diff(from);
    RL_CHECK(size[0] == 0 || (number(ops::amin(counts)) >= 0 && number(ops::amax(counts)) <= size[1]),
             throw_runtime,
             "%s: `0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied", op);
    check_range(op, "col_indices", columns, size[1]);
    if (nnz < 2) return;
    // Within a row the columns rise: where they do not, a new row begins.
    const Tensor rows =
        ops::repeat_interleave(ops::arange(Scalar(size[0]), DType::Int64, crow.device()), counts, 0, nnz);
    const Tensor same = ops::eq(ops::diff(rows), Scalar(0)), falls = ops::le(ops::diff(to), Scalar(0));
    RL_CHECK(
        !truth(ops::any(ops::bitwise_and(same, falls))), throw_runtime,
        "%s: `col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows are sorted "
        "and distinct along the last dimension values` is not satisfied.",
        op);
}

}  // namespace

void check_sparse(const char* op, IntList size, const SparseParts& parts, bool values) {
    for (int64_t n : size)
        RL_CHECK(n >= 0, throw_runtime, "%s(size): must not be negative, got %s", op,
                 to_string(size).c_str());
    for (const Tensor* t : {&parts.indices, &parts.columns, &parts.values}) {
        if (!t->defined()) continue;
        RL_CHECK(!is_sparse(*t), throw_type, "%s: indices and values must be plain tensors, got layout %s",
                 op, layout_name(*t));
        RL_CHECK(t->device() == parts.values.device(), throw_runtime,
                 "%s: device of indices (%s) must match device of values (%s)", op, name(t->device()).c_str(),
                 name(parts.values.device()).c_str());
    }
    if (parts.values.device().type == DeviceType::Meta) values = false;
    if (parts.layout == Layout::Coo) check_coo(op, size, parts, values);
    else check_csr(op, size, parts, values);
}

Tensor to_dense(const Tensor& t) {
    if (!is_sparse(t)) return t;
    const sparse::Coordinates c = sparse::coordinates(t);
    std::vector<int64_t> flat = c.values.shape();
    flat[0] = c.num_places();
    const Tensor zeros = ops::zeros(flat, t.dtype(), t.device());
    return ops::reshape(ops::index_add(zeros, 0, c.places(), c.values), c.size);
}

Tensor to_sparse_coo(const Tensor& t, int64_t sparse_dim) {
    if (is_sparse(t)) {
        const sparse::Coordinates c = sparse::coordinates(t);
        RL_CHECK(sparse_dim == c.sparse_dim(), throw_not_implemented,
                 "to_sparse(sparse_dim): a sparse tensor with %lld sparse dimensions cannot be given %lld",
                 (long long)c.sparse_dim(), (long long)sparse_dim);
        return sparse_parts(t).layout == Layout::Coo ? t : sparse::from_coordinates(c);
    }
    RL_CHECK(sparse_dim >= 1 && sparse_dim <= t.dim(), throw_runtime,
             "to_sparse(sparse_dim): must be in [1, %lld], got %lld", (long long)t.dim(),
             (long long)sparse_dim);
    const auto front = static_cast<size_t>(sparse_dim);
    std::vector<int64_t> flat{1};
    for (size_t d = 0; d < front; ++d) flat[0] *= t.sizes()[d];
    flat.insert(flat.end(), t.sizes().begin() + sparse_dim, t.sizes().end());
    const Tensor rows = ops::reshape(t, flat), given = ops::ne(ops::detach(rows), Scalar(0));
    std::vector<int64_t> rest(flat.size() - 1);
    std::iota(rest.begin(), rest.end(), 1);
    const Tensor places =
        ops::reshape(ops::nonzero(rest.empty() ? given : ops::any(given, IntList(rest))), kInts<-1>);
    return sparse::from_coordinates({sparse::coordinates_of(places, t.sizes().first(front)),
                                     ops::index_select(rows, 0, places), t.shape(), true});
}

Tensor to_sparse_csr(const Tensor& t) {
    if (is_sparse(t) && sparse_parts(t).layout == Layout::Csr) return t;
    RL_CHECK(t.dim() == 2 && (!is_sparse(t) || sparse_parts(t).indices.size(0) == 2), throw_not_implemented,
             "to_sparse_csr: needs a matrix with no dense dimensions, got shape %s",
             to_string(t.sizes()).c_str());
    const sparse::Coordinates c = sparse::coalesced(is_sparse(t) ? t : to_sparse_coo(t, 2));
    const Tensor bounds = ops::arange(Scalar(c.size[0] + 1), DType::Int64, t.device());
    const Tensor crow = ops::searchsorted(c.along(0), bounds);
    const Tensor columns = ops::clone(c.along(1));
    return sparse::with_values(make_sparse(c.size, {Layout::Csr, crow, columns, make_alias(c.values), true}),
                               c.values);
}

namespace sparse {
namespace {

Tensor clone(const Tensor& t, std::optional<std::string_view>) {
    SparseParts parts = sparse_parts(t);
    parts.indices = ops::clone(parts.indices);
    if (parts.columns.defined()) parts.columns = ops::clone(parts.columns);
    return with_values(make_sparse(t.sizes(), std::move(parts)), ops::clone(ops::_sparse_values(t)));
}

Tensor to_copy(const Tensor& t, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking) {
    SparseParts parts = sparse_parts(t);
    if (device && *device != t.device()) {
        parts.indices = ops::_to_copy(parts.indices, std::nullopt, device, non_blocking);
        if (parts.columns.defined())
            parts.columns = ops::_to_copy(parts.columns, std::nullopt, device, non_blocking);
    }
    const Tensor values = ops::_to_copy(ops::_sparse_values(t), dtype, device, non_blocking);
    parts.values = make_alias(values);
    return with_values(make_sparse(t.sizes(), std::move(parts)), values);
}

// The parts of a tensor like `t` in which nothing is given.
SparseParts nothing(const Tensor& t, DType dtype, Device device) {
    SparseParts parts = sparse_parts(t);
    std::vector<int64_t> shape = parts.values.shape();
    shape[0] = 0;
    parts.values = ops::zeros(shape, dtype, device);
    if (parts.layout == Layout::Coo) {
        const int64_t none[] = {parts.indices.size(0), 0};
        parts.indices = ops::zeros(none, DType::Int64, device);
    } else {
        parts.columns = ops::zeros(kInts<0>, parts.columns.dtype(), device);
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
             "copy_(other): a copy of a sparse tensor that requires grad is not recorded\nhint: use clone()");
    set_sparse_parts(to, sparse_parts(ops::_to_copy(from, to.dtype(), to.device(), non_blocking)));
    return to;
}

Tensor permute(const Tensor& t, IntList dims) {
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
                 "permute(dims): a sparse dimension cannot change places with a dense one");
        (is_front ? front : back).push_back(is_front ? d : d - c.sparse_dim() + 1);
        size.push_back(c.size[static_cast<size_t>(d)]);
    }
    const bool moved = !std::is_sorted(front.begin(), front.end());
    std::vector<Tensor> rows;
    for (int64_t d : front) rows.push_back(c.along(d));
    const Tensor indices = moved ? ops::stack(rows, 0) : c.indices;
    return in_layout({indices, ops::permute(c.values, back), std::move(size), c.coalesced && !moved},
                     layout_of(t));
}

Tensor transpose(const Tensor& t, int64_t dim0, int64_t dim1) {
    const int64_t n = t.dim();
    std::vector<int64_t> dims(static_cast<size_t>(n));
    std::iota(dims.begin(), dims.end(), 0);
    std::swap(dims[static_cast<size_t>(wrapped("transpose", dim0, n))],
              dims[static_cast<size_t>(wrapped("transpose", dim1, n))]);
    return permute(t, dims);
}

Tensor transposed(const Tensor& t) {
    RL_CHECK(t.dim() <= 2, throw_runtime, "t(input): needs at most 2 dimensions, got %lld",
             (long long)t.dim());
    return t.dim() == 2 ? transpose(t, 0, 1) : t;
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
    RL_SPARSE(t, "t", transposed);
}

}  // namespace sparse
}  // namespace rushlight
