// Products of matrices and vectors, as defined in cpu/matmul.h.
#include <algorithm>

#include "cuda/blas.h"
#include "cuda/kernels.h"
#include "cuda/pointwise.h"
#include "cuda/products.h"
#include "cuda/queue.h"

namespace rushlight::cuda {
namespace {

/// Returns a view of two dimensions as a matrix for the library, or a view of three dimensions as a batch of matrices.
/// Copies the view unless its rows or its columns are contiguous.
Matrix matrix(const KernelArgs& args, const View& given, bool transposed) {
    View v = given;
    int64_t sizes[3], strides[3];
    const int n = v.ndim;
    for (int d = 0; d < n; ++d) {
        sizes[d] = v.sizes[d];
        strides[d] = v.strides[d];
    }
    if (transposed) {
        std::swap(sizes[n - 1], sizes[n - 2]);
        std::swap(strides[n - 1], strides[n - 2]);
    }
    const auto taken = [&]() -> Matrix {
        const int64_t rows = sizes[n - 2], columns = sizes[n - 1];
        int64_t row = strides[n - 2], column = strides[n - 1];
        // The stride of a dimension of size 1 is arbitrary, so a suitable one is chosen.
        if (rows == 1 && columns == 1) row = column = 1;
        else if (rows == 1) row = column == 1 ? columns : 1;
        else if (columns == 1) column = row == 1 ? rows : 1;
        const int64_t batch = n == 3 ? strides[0] : 0;
        const bool contiguous = (column == 1 && row >= columns) || (row == 1 && column >= rows);
        return {contiguous && batch >= 0 ? v.data : nullptr, batch, row, column};
    };
    if (const Matrix m = taken(); m.data) return m;
    const RowMajor dense(sizes, n);
    View from = v, to = v;
    from.sizes = to.sizes = sizes;
    from.strides = strides;
    from.contiguous = 0;
    to.strides = dense.strides;
    to.contiguous = 1;
    to.data = scratch<char>(args.context, v.numel * static_cast<int64_t>(itemsize(v.dtype)));
    queue_copy(to, from, args.context);
    v.data = to.data;
    std::copy_n(dense.strides, n, strides);
    return taken();
}

/// Returns a number as a Param.
Param number(int64_t x) { return {Param::Kind::Int, 0, {x}}; }

double real_number(const Param& p) {
    if (p.kind == Param::Kind::Complex)
        fail(BackendStatus::NotImplemented,
             "complex values of alpha and beta are not supported for real matrices");
    return p.as_float();
}

/// Computes out = alpha * a @ b + beta * input. All tensors have two or three dimensions. `input` is broadcast, or is
/// null. `bias`, which may be null, is added by the library to each row.
void queue_product(const KernelArgs& args, const View& out, const View& a, const View& b, bool b_transposed,
                   const View* input, const Param& given_beta, const Param& given_alpha, const void* bias) {
    if (out.numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    if (!is_floating(out.dtype))
        return queue_plain_product(args, out, a, b, b_transposed, input, given_beta, given_alpha);
    const double beta = real_number(given_beta), alpha = real_number(given_alpha);
    const int64_t k = alpha == 0 ? 0 : a.sizes[a.ndim - 1];  // zero times an infinite product would be NaN
    if (input && beta != 0) queue_broadcast(out, *input, args.context);
    if (k == 0 && (!input || beta == 0)) return queue_zeros(out, args.context);
    Product p;
    p.dtype = p.result = out.dtype;
    p.count = out.ndim == 3 ? out.sizes[0] : 1;
    p.m = out.sizes[out.ndim - 2];
    p.n = out.sizes[out.ndim - 1];
    p.k = k;
    p.alpha = alpha;
    p.beta = input ? beta : 0;
    p.bias = bias;
    p.tf32 = permits(Setting::Tf32Products);
    p.half_sums = out.dtype == DType::Float16 && permits(Setting::Fp16Accumulation);
    p.splits = (out.dtype != DType::Float16 || permits(Setting::Fp16SplitSums)) &&
               (out.dtype != DType::BFloat16 || permits(Setting::BFloat16SplitSums));
    if (k > 0) {
        p.a = matrix(args, a, false);
        p.b = matrix(args, b, b_transposed);
    } else {  // the library requires a nonempty inner dimension, so a column of zeros is multiplied by a row of zeros
        const int64_t length = std::max(p.m, p.n), step = 1;
        char* const zeros = scratch<char>(args.context, length * static_cast<int64_t>(itemsize(out.dtype)));
        queue_zeros(View{zeros, &length, &step, length, 1, out.dtype, 1}, args.context);
        p.k = 1;
        p.a = {zeros, 0, 1, p.m};
        p.b = {zeros, 0, p.n, 1};
    }
    p.out = {out.data, p.m * p.n, p.n, 1};
    void* workspace = scratch<char>(args.context, kWorkspaceBytes);
    multiply(args.context->call->device, stream, workspace, kWorkspaceBytes, p);
}

/// A tensor (..., k) as a matrix with k columns. The tensor is copied if it is not contiguous.
struct Flat {
    int64_t sizes[2], strides[2];
    View view;
    Flat(const KernelArgs& args, const View& v) : view(v) {
        if (v.ndim == 2) return;
        sizes[1] = v.ndim ? v.sizes[v.ndim - 1] : 1;
        sizes[0] = sizes[1] ? v.numel / sizes[1] : 0;
        strides[0] = sizes[1];
        strides[1] = 1;
        if (!v.contiguous) {
            const RowMajor dense(v.sizes, v.ndim);
            View copy = v;
            copy.data = scratch<char>(args.context, v.numel * static_cast<int64_t>(itemsize(v.dtype)));
            copy.strides = dense.strides;
            copy.contiguous = 1;
            queue_copy(copy, v, args.context);
            view.data = copy.data;
        }
        view.sizes = sizes;
        view.strides = strides;
        view.ndim = 2;
        view.contiguous = 1;
    }
    Flat(const Flat&) = delete;
};

}  // namespace

BackendStatus mm(const KernelArgs* args) {
    return guarded([args] {
        queue_product(*args, args->out(0), args->in(0), args->in(1), false, nullptr, number(0), number(1),
                      nullptr);
    });
}
BackendStatus bmm(const KernelArgs* args) { return mm(args); }

BackendStatus addmm(const KernelArgs* args) {
    return guarded([args] {
        queue_product(*args, args->out(0), args->in(1), args->in(2), false, &args->in(0), args->params[0],
                      args->params[1], nullptr);
    });
}
BackendStatus baddbmm(const KernelArgs* args) { return addmm(args); }

BackendStatus mv(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &x = args->in(1);
        // The vectors are passed as matrices of one column.
        const int64_t rows[] = {out.numel, 1}, steps[] = {1, 1}, length[] = {x.numel, 1},
                      x_steps[] = {x.strides[0], 1};
        const View y{out.data, rows, steps, out.numel, 2, out.dtype, 1};
        const View column{x.data, length, x_steps, x.numel, 2, x.dtype, 0};
        queue_product(*args, y, args->in(0), column, false, nullptr, number(0), number(1), nullptr);
    });
}

BackendStatus linear(const KernelArgs* args) {
    return guarded([args] {
        const View &weight = args->in(1), &bias = args->in(2);
        const View& out = args->out(0);
        const Flat x(*args, args->in(0));
        // A weight with one dimension is a single row, and the result has no dimension for features.
        const int64_t n = weight.ndim == 1 ? 1 : weight.sizes[0], k = weight.sizes[weight.ndim - 1];
        const int64_t row[] = {1, k}, row_steps[] = {k, weight.strides[weight.ndim - 1]};
        const View w = weight.ndim == 1 ? View{weight.data, row, row_steps, k, 2, weight.dtype, 0} : weight;
        const int64_t made[] = {n ? out.numel / n : 0, n}, made_steps[] = {n, 1};
        const View y{out.data, made, made_steps, out.numel, 2, out.dtype, 1};
        // The library can add a row of n numbers. Any other bias is broadcast to the output first.
        const bool is_row = bias.defined() && bias.ndim == 1 && bias.numel == n && bias.strides[0] == 1 &&
                            k > 0 && is_floating(out.dtype);
        queue_product(*args, y, x.view, w, true, bias.defined() && !is_row ? &bias : nullptr, number(1),
                      number(1), is_row ? bias.data : nullptr);
    });
}

BackendStatus dot(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &a = args->in(0), &b = args->in(1);
        // Multiplies the vectors as a row and a column.
        const int64_t one[] = {1, 1}, row[] = {1, a.numel}, column[] = {b.numel, 1},
                      row_steps[] = {a.numel, a.strides[0]}, column_steps[] = {b.strides[0], 1};
        queue_product(*args, View{out.data, one, one, 1, 2, out.dtype, 1},
                      View{a.data, row, row_steps, a.numel, 2, a.dtype, 0},
                      View{b.data, column, column_steps, b.numel, 2, b.dtype, 0}, false, nullptr, number(0),
                      number(1), nullptr);
    });
}

}  // namespace rushlight::cuda
