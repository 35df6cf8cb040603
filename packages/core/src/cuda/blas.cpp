// Matrix products by cuBLASLt, which expects column-major matrices. A row-major matrix is the transpose of a column-major
// one, so out = a b is computed as out' = b' a'.
#include "cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "cuda/driver.h"
#include "cuda/failure.h"
#include "rushlight/half.h"

namespace rushlight::cuda {
namespace {

void check(cublasStatus_t status, const char* what) {
    // The library does not say why a launch failed. CUDA's error does, and the plug-in names the last operators for it.
    if (status == CUBLAS_STATUS_EXECUTION_FAILED) cuda::check(driver.last_error(), what);
    if (status != CUBLAS_STATUS_SUCCESS)
        fail(status == CUBLAS_STATUS_NOT_SUPPORTED ? BackendStatus::NotImplemented : BackendStatus::Runtime,
             "%s: cuBLASLt returned %s", what, cublasLtGetStatusString(status));
}

struct Destroy {
    void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
    void operator()(cublasLtMatrixLayout_t d) const { cublasLtMatrixLayoutDestroy(d); }
    void operator()(cublasLtMatmulPreference_t d) const { cublasLtMatmulPreferenceDestroy(d); }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;

cudaDataType_t type_of(DType dtype) {
    switch (dtype) {
        case DType::Float16: return CUDA_R_16F;
        case DType::BFloat16: return CUDA_R_16BF;
        case DType::Float32: return CUDA_R_32F;
        default: return CUDA_R_64F;
    }
}

/// Returns the library's handle for a device. Handles are never freed.
cublasLtHandle_t handle_of(int32_t device) {
    static std::mutex mutex;
    static auto* handles = new std::map<int32_t, cublasLtHandle_t>;
    std::lock_guard lock(mutex);
    cublasLtHandle_t& handle = (*handles)[device];
    if (!handle) check(cublasLtCreate(&handle), "starting cuBLASLt");
    return handle;
}

/// Describes a column-major matrix of `rows` by `columns`. `leading` is the distance between the beginnings of its
/// columns.
Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading,
                                     int64_t count, int64_t batch) {
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                     leading),
          "describing a matrix");
    Owned<cublasLtMatrixLayout_t> owned(made);
    if (count > 1) {
        const auto matrices = static_cast<int32_t>(count);
        check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices,
                                               sizeof matrices),
              "describing a batch");
        check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch,
                                               sizeof batch),
              "describing a batch");
    }
    return owned;
}

/// An operand of the product out^T = b^T @ a^T. The library's matrices are column-major, and a row-major matrix is its
/// transpose in column-major order. The library therefore transposes only operands that are not row-major.
struct Operand {
    cublasOperation_t operation;
    Owned<cublasLtMatrixLayout_t> layout;
    Operand(cudaDataType_t type, const Matrix& m, int64_t rows, int64_t columns, int64_t count) {
        // A row-major (rows, columns) matrix is a (columns, rows) matrix for the library. The stride of a dimension of size
        // 1 has no meaning, but the library requires one that is not less than the length of a row or column.
        const bool row_major = m.column == 1 && (rows <= 1 || m.row >= columns);
        operation = row_major ? CUBLAS_OP_N : CUBLAS_OP_T;
        layout = row_major ? cuda::layout(type, columns, rows, std::max(m.row, columns), count, m.batch)
                           : cuda::layout(type, rows, columns, std::max(m.column, rows), count, m.batch);
    }
};

int alignment_of(const void* data) {
    const auto at = reinterpret_cast<uintptr_t>(data);
    return at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : at % 4 == 0 ? 4 : 2;
}

/// The largest number of matrices of a product: the library stores it as int32_t. Tests use a smaller value.
#ifndef RUSHLIGHT_CUDA_MATRICES
#define RUSHLIGHT_CUDA_MATRICES INT32_MAX
#endif
constexpr int64_t kMatrices = RUSHLIGHT_CUDA_MATRICES;

/// Returns the product of `count` of the matrices, the first of which has the number `first`.
Product part_of(const Product& p, int64_t first, int64_t count) {
    Product part = p;
    part.count = count;
    const auto move = [&](Matrix& m, DType dtype) {
        m.data = static_cast<const char*>(m.data) + first * m.batch * static_cast<int64_t>(itemsize(dtype));
    };
    move(part.a, p.dtype);
    move(part.b, p.dtype);
    move(part.out, p.result);
    return part;
}

using Key =
    std::tuple<int32_t, DType, DType, bool, bool, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
               int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, int, size_t, bool, bool>;

}  // namespace

void multiply(int32_t device, cudaStream_t stream, void* workspace, size_t workspace_bytes,
              const Product& p) {
    if (p.count > kMatrices) {
        for (int64_t first = 0; first < p.count; first += kMatrices)
            multiply(device, stream, workspace, workspace_bytes,
                     part_of(p, first, std::min(kMatrices, p.count - first)));
        return;
    }
    const cublasLtHandle_t handle = handle_of(device);
    const cudaDataType_t type = type_of(p.dtype);
    const bool is_double = p.dtype == DType::Float64;
    const bool half_sums = p.half_sums && p.dtype == DType::Float16 && p.result == DType::Float16;
    const cublasComputeType_t compute = is_double                             ? CUBLAS_COMPUTE_64F
                                        : half_sums                           ? CUBLAS_COMPUTE_16F
                                        : p.dtype == DType::Float32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                              : CUBLAS_COMPUTE_32F;
    const cudaDataType_t scale_type = is_double ? CUDA_R_64F : half_sums ? CUDA_R_16F : CUDA_R_32F;
    cublasLtMatmulDesc_t made = nullptr;
    check(cublasLtMatmulDescCreate(&made, compute, scale_type), "describing a product");
    const Owned<cublasLtMatmulDesc_t> description(made);
    const Operand first(type, p.b, p.k, p.n, p.count), second(type, p.a, p.m, p.k, p.count);
    const auto out = layout(type_of(p.result), p.n, p.m, std::max(p.out.row, p.n), p.count, p.out.batch);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
        check(cublasLtMatmulDescSetAttribute(made, attribute, &value, sizeof value), "describing a product");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, first.operation);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second.operation);
    if (p.bias) {
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    }
    int alignment = 16;
    for (const void* data : {p.a.data, p.b.data, p.out.data, p.bias})  // an absent bias has any alignment
        alignment = std::min(alignment, alignment_of(data));

    // The algorithm that the library recommends is cached. The key consists of all properties of the product.
    static std::mutex mutex;
    static auto* advised = new std::map<Key, cublasLtMatmulAlgo_t>;
    const Key key(device, p.dtype, p.result, p.tf32, p.bias != nullptr, p.count, p.m, p.n, p.k, p.a.batch,
                  p.a.row, p.a.column, p.b.batch, p.b.row, p.b.column, p.out.batch, p.out.row, p.out.column,
                  p.beta == 0, alignment, workspace_bytes, half_sums, p.splits);
    cublasLtMatmulAlgo_t algorithm;
    std::unique_lock lock(mutex);
    if (const auto found = advised->find(key); found != advised->end()) {
        algorithm = found->second;
    } else {
        lock.unlock();
        cublasLtMatmulPreference_t wanted = nullptr;
        check(cublasLtMatmulPreferenceCreate(&wanted), "choosing a kernel");
        const Owned<cublasLtMatmulPreference_t> preference(wanted);
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
            check(cublasLtMatmulPreferenceSetAttribute(wanted, attribute, &value, sizeof value),
                  "choosing a kernel");
        };
        const auto bytes = static_cast<uint32_t>(alignment);
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
        // If several blocks compute parts of a sum, the parts are added in the compute type. The library's default also
        // permits additions in the type of the result, which may be float16.
        const uint32_t schemes =
            p.splits ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
        for (const auto side :
             {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
            prefer(side, bytes);
        cublasLtMatmulHeuristicResult_t best;
        int found_count = 0;
        check(cublasLtMatmulAlgoGetHeuristic(handle, made, first.layout.get(), second.layout.get(), out.get(),
                                             out.get(), wanted, 1, &best, &found_count),
              "choosing a kernel");
        if (found_count == 0)
            fail(BackendStatus::NotImplemented,
                 "cuBLASLt has no kernel for a product of (%lld, %lld) and (%lld, %lld)", (long long)p.m,
                 (long long)p.k, (long long)p.k, (long long)p.n);
        algorithm = best.algo;
        lock.lock();
        advised->insert_or_assign(key, algorithm);
    }
    lock.unlock();
    const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const Half half_alpha(alpha), half_beta(beta);
    const void* scale = &alpha;
    const void* keep = &beta;
    if (is_double) scale = &p.alpha, keep = &p.beta;
    if (half_sums) scale = &half_alpha, keep = &half_beta;
    void* const result = const_cast<void*>(p.out.data);
    check(
        cublasLtMatmul(handle, made, scale, p.b.data, first.layout.get(), p.a.data, second.layout.get(), keep,
                       result, out.get(), result, out.get(), &algorithm, workspace, workspace_bytes, stream),
        "multiplying matrices");
}

}  // namespace rushlight::cuda
