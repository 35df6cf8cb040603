#include "sparse/parts.h"

#include "rushlight/batched.h"
#include "rushlight/dispatch.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/_unique_elements.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/arange.h"
#include "rushlight/ops/cumsum.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/floor_divide.h"
#include "rushlight/ops/index_add.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ones.h"
#include "rushlight/ops/remainder.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/zeros.h"

namespace rushlight::sparse {

Tensor Coordinates::along(int64_t dim) const { return ops::select(indices, 0, dim); }

Tensor Coordinates::positions() const {
    const int64_t count[] = {nnz()};
    if (sparse_dim() == 0) return ops::zeros(count, DType::Int64, indices.device());
    Tensor positions = along(0);
    for (int64_t d = 1; d < sparse_dim(); ++d)
        positions = ops::add(ops::mul(positions, Scalar(size[static_cast<size_t>(d)])), along(d));
    return positions;
}

int64_t Coordinates::num_positions() const {
    int64_t n = 1;
    for (int64_t d = 0; d < sparse_dim(); ++d) n *= size[static_cast<size_t>(d)];
    return n;
}

Tensor coordinates_of(const Tensor& positions, IntList size) {
    const int64_t none[] = {0, positions.numel()};
    if (size.empty()) return ops::zeros(none, DType::Int64, positions.device());
    if (size.size() == 1) return ops::unsqueeze(positions, 0);
    std::vector<Tensor> rows(size.size());
    Tensor rest = positions;
    for (size_t d = size.size(); d-- > 1;) {
        const Scalar n(std::max<int64_t>(size[d], 1));
        rows[d] = ops::remainder(rest, n);
        rest = ops::floor_divide(rest, n);
    }
    rows[0] = rest;
    return ops::stack(rows, 0);
}

Coordinates coordinates(const Tensor& t) {
    const SparseParts& parts = sparse_parts(t);
    Coordinates c{parts.indices, ops::_sparse_values(t), t.shape(), parts.coalesced};
    if (parts.layout == Layout::Coo) return c;
    auto wide = [](const Tensor& x) {
        return x.dtype() == DType::Int64 ? x : ops::_to_copy(x, DType::Int64);
    };
    // The row of a value is the number of rows that end before it. The same holds for columns.
    const int64_t nnz = parts.plain.numel(), count = parts.indices.numel() - 1;
    const Tensor ends = ops::slice(wide(parts.indices), 0, 1, count, 1);
    const Tensor one = ops::ones(ends.sizes(), DType::Int64, ends.device());
    const int64_t positions[] = {nnz + 1};
    const Tensor ended = ops::index_add(ops::zeros(positions, DType::Int64, ends.device()), 0, ends, one);
    const Tensor compressed = ops::slice(ops::cumsum(ended, 0), 0, 0, nnz, 1), plain = wide(parts.plain);
    Tensor both[] = {by_columns(parts.layout) ? plain : compressed,
                     by_columns(parts.layout) ? compressed : plain};
    if (has_blocks(parts.layout)) {
        for (int d = 0; d < 2; ++d) {
            const int64_t in_block = parts.values.size(d + 1);
            const int64_t of_blocks[] = {nnz, 1, 1},
                          of_elements[] = {1, d == 0 ? in_block : 1, d == 1 ? in_block : 1};
            const Tensor first = ops::reshape(ops::mul(both[d], Scalar(in_block)), of_blocks);
            const Tensor inner = ops::arange(Scalar(in_block), DType::Int64, first.device());
            const Tensor each = ops::add(first, ops::reshape(inner, of_elements));
            both[d] = ops::reshape(ops::expand(each, parts.values.sizes()), kInts<-1>);
        }
        c.values = ops::reshape(c.values, kInts<-1>);
    }
    c.indices = ops::stack(both, 0);
    c.coalesced = parts.layout == Layout::Csr;  // in the other layouts, elements are not in row-major order
    return c;
}

Coordinates coalesced(const Tensor& t) {
    Coordinates c = coordinates(t);
    return c.coalesced ? c : coordinates(coalesce(from_coordinates(c)));
}

Tensor from_coordinates(const Coordinates& c) {
    const Tensor pattern =
        make_sparse(c.size, {Layout::Coo, c.indices, Tensor(), make_alias(c.values), c.coalesced});
    return c.values.impl()->stages() ? ops::_with_sparse_values(c.values, pattern) : pattern;
}

Tensor in_layout(const Tensor& coo, const Tensor& like) {
    const SparseParts& parts = sparse_parts(like);
    if (parts.layout == Layout::Coo) return coo;
    if (!has_blocks(parts.layout)) return to_sparse_compressed(coo, parts.layout);
    const int64_t rows = parts.values.size(1), columns = parts.values.size(2);
    const bool whole = coo.size(0) % rows == 0 && coo.size(1) % columns == 0;
    return whole ? to_sparse_compressed(coo, parts.layout, rows, columns) : coo;
}

Tensor with_values(const Tensor& like, const Tensor& values) {
    SparseParts parts = sparse_parts(like);
    parts.values = make_alias(values);
    const Tensor pattern = make_sparse(like.sizes(), std::move(parts));
    return values.impl()->stages() ? ops::_with_sparse_values(values, pattern) : pattern;
}

int64_t wrapped(const char* op, int64_t dim, int64_t ndim) {
    RL_CHECK(dim >= -ndim && dim < ndim, throw_index, "%s(dim): must be in [%lld, %lld], got %lld", op,
             (long long)-ndim, (long long)ndim - 1, (long long)dim);
    return dim < 0 ? dim + ndim : dim;
}

void check_write(const char* op, const Tensor& t) {
    RL_CHECK(
        !grad_mode() || !t.requires_grad(), throw_not_implemented,
        "%s: a sparse tensor that requires grad cannot be written in place while gradients are recorded\n"
        "hint: use the form that returns a new tensor, or torch.no_grad()",
        op);
    begin_write(op, t);
}

void refuse(const char* op, const Tensor& t, const char* what) {
    throw_not_implemented("%s: %s is not supported for tensors of layout %s\nhint: use to_dense()", op, what,
                          layout_name(t));
}

}  // namespace rushlight::sparse

namespace rushlight {

void assign_sparse(const char* op, const Tensor& t, const Tensor& other) {
    sparse::check_write(op, t);
    // The parts belong to the storage, and so does its counter of versions. A node that saved `t` must see the write.
    const uint32_t version = t.version();
    t.impl()->assign(Ref<Storage>::share(other.impl()->storage()), other.sizes(), other.strides(), 0,
                     other.dtype());
    t.impl()->own_version(version);
}

Tensor coalesce(const Tensor& t) {
    RL_CHECK(is_sparse(t) && sparse_parts(t).layout == Layout::Coo, throw_runtime,
             "coalesce expected sparse coordinate tensor layout but got %s", layout_name(t));
    if (sparse_parts(t).coalesced) return t;
    sparse::Coordinates c = sparse::coordinates(t);
    const auto [positions, inverse, counts] = ops::_unique_elements(c.positions(), false, true, false);
    c.indices = sparse::coordinates_of(positions, IntList(c.size).first(static_cast<size_t>(c.sparse_dim())));
    std::vector<int64_t> shape = c.values.shape();
    shape[0] = positions.numel();
    c.values = ops::index_add(ops::zeros(shape, c.values.dtype(), c.values.device()), 0, inverse, c.values);
    c.coalesced = true;
    return sparse::from_coordinates(c);
}

}  // namespace rushlight
