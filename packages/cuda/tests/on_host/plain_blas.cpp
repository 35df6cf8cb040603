// Matrix products by plain loops, in place of cuBLASLt.
#include <functional>

#include "cuda/blas.h"
#include "cuda/launch.h"
#include "ops/cast_element.h"

namespace rushlight::cuda {
namespace {

template <class T, class Sum, class Result = T>
void run(const Product& p) {
    const auto* bias = static_cast<const T*>(p.bias);
    for (int64_t c = 0; c < p.count; ++c)
        for (int64_t i = 0; i < p.m; ++i)
            for (int64_t j = 0; j < p.n; ++j) {
                const T* a = static_cast<const T*>(p.a.data) + c * p.a.batch + i * p.a.row;
                const T* b = static_cast<const T*>(p.b.data) + c * p.b.batch + j * p.b.column;
                Result& out =
                    static_cast<Result*>(const_cast<void*>(p.out.data))[c * p.out.batch + i * p.out.row + j];
                Sum sum = 0;
                for (int64_t k = 0; k < p.k; ++k)
                    sum += static_cast<Sum>(a[k * p.a.column]) * static_cast<Sum>(b[k * p.b.row]);
                sum *= static_cast<Sum>(p.alpha);
                if (p.beta != 0) sum += static_cast<Sum>(p.beta) * static_cast<Sum>(out);
                if (bias) sum += static_cast<Sum>(bias[j]);
                out = Result(sum);
            }
}

/// Fails for matrices that the library would not accept.
void check_matrix(const Matrix& m, int64_t rows, int64_t columns) {
    const bool contiguous = (m.column == 1 && m.row >= columns) || (m.row == 1 && m.column >= rows);
    if (!contiguous || m.batch < 0)
        fail(BackendStatus::Runtime, "a matrix without contiguous rows or columns was passed to the library");
}

}  // namespace

static bool last_tf32 = false;

void multiply(int32_t, cudaStream_t stream, void*, size_t, const Product& p) {
    last_tf32 = p.tf32;
    check_matrix(p.a, p.m, p.k);
    check_matrix(p.b, p.k, p.n);
    check_matrix(p.out, p.m, p.n);
    if (p.result != p.dtype && (p.result != DType::Float32 || itemsize(p.dtype) != 2))
        fail(BackendStatus::Runtime, "a product of dtypes that the library does not have");
    check(queue_on_host(stream,
                        [p] {
                            if (p.result != p.dtype) {
                                if (p.dtype == DType::Float16) return run<Half, float, float>(p);
                                return run<BFloat16, float, float>(p);
                            }
                            switch (p.dtype) {
                                case DType::Float16: return run<Half, float>(p);
                                case DType::BFloat16: return run<BFloat16, float>(p);
                                case DType::Float32: return run<float, float>(p);
                                default: return run<double, double>(p);
                            }
                        }),
          "multiplying matrices");
}

}  // namespace rushlight::cuda

extern "C" [[gnu::visibility("default")]] int fake_cuda_last_product_tf32() {
    return rushlight::cuda::last_tf32;
}
