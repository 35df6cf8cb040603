// Singular value decompositions: Note [Singular values on a GPU].
#include "cuda/kernels/svd.cuh"

#include "cuda/kernels.h"

namespace rushlight::cuda {

BackendStatus linalg_svd(const KernelArgs* args) {
    const View &u = args->out(0), &s = args->out(1), &vh = args->out(2), &a = args->in(0);
    return by_scalar(args, a.dtype, [&]<class T>(T) {
        KernelContext* const context = args->context;
        const bool wanted = args->params[1].as_bool(), tall = a.size(-2) >= a.size(-1);
        const DenseOut<T> left(context, wanted ? u : kAbsent), right(context, wanted ? vh : kAbsent);
        const DenseOut<Real<T>> values(context, s);
        // A is U S V^T with V^T = `vh`. The transpose of a wide matrix is decomposed, so U and V are exchanged.
        const Matrices<T> of_u = wanted ? row_major(left.data(), u) : Matrices<T>{},
                          of_v = wanted ? row_major(right.data(), vh).transposed() : Matrices<T>{};
        const int64_t m = a.size(-2), n = a.size(-1), count = count_matrices(a);
        if (s.numel > 0) {
            const Columns<T> columns(tall ? copied_columns<T>(context, a) : copied<T>(context, a), count,
                                     tall ? n : m, tall ? m : n);
            queue_svd(*args, columns, values.data(), tall ? of_u : of_v,
                      !wanted ? 0
                      : tall  ? u.size(-1)
                              : vh.size(-2),
                      tall ? of_v : of_u);
        } else if (wanted) {
            queue_identity(*args, count, of_u, m, u.size(-1));
            queue_identity(*args, count, of_v, n, vh.size(-2));
        }
        left.finish();
        right.finish();
        values.finish();
    });
}

}  // namespace rushlight::cuda
