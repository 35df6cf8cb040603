// cuBLASLt by plain loops. Like the library, it refuses matrices without contiguous columns, and operands that are not
// aligned as the chosen algorithm requires.
#include <cublasLt.h>

#include <cstring>
#include <functional>

#include "cuda/launch.h"
#include "ops/cast_element.h"

struct FakeBlas {};
struct FakeProduct {
    cublasComputeType_t compute;
    cublasOperation_t operations[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
};
/// A column-major matrix, or a batch of matrices.
struct FakeLayout {
    cudaDataType_t type;
    int64_t rows, columns, leading;
    int32_t count = 1;
    int64_t batch = 0;
};
struct FakePreference {
    uint64_t workspace = 0;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK, alignments[4] = {256, 256, 256, 256};
};

namespace rushlight::cuda {
namespace {

cublasComputeType_t last_compute;
uint32_t last_schemes;

/// Copies the value of an attribute if it has the size of the attribute.
template <class T>
cublasStatus_t store(T& attribute, const void* value, size_t size) {
    if (size != sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&attribute, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

bool is_valid(const FakeLayout& m) {
    return m.rows > 0 && m.columns > 0 && m.leading >= m.rows && m.count > 0 && m.batch >= 0 &&
           m.count <= RUSHLIGHT_CUDA_MATRICES;
}

/// A product whose descriptions may be destroyed before it is computed.
struct Task {
    FakeProduct product;
    const void *a, *b;
    void* out;
    FakeLayout a_layout, b_layout, out_layout;
    double alpha, beta;
};

/// Computes a product. If `kHalfSums` is true, every sum is rounded to float16.
template <class T, class Sum, class Result = T, bool kHalfSums = false>
void run(const Task& t) {
    const auto* bias =
        t.product.epilogue == CUBLASLT_EPILOGUE_BIAS ? static_cast<const T*>(t.product.bias) : nullptr;
    const auto steps = [](const FakeLayout& m, cublasOperation_t operation) {
        const int64_t down = operation == CUBLAS_OP_N ? 1 : m.leading;
        return std::pair(down, operation == CUBLAS_OP_N ? m.leading : 1);
    };
    const auto [a_row, a_column] = steps(t.a_layout, t.product.operations[0]);
    const auto [b_row, b_column] = steps(t.b_layout, t.product.operations[1]);
    const int64_t inner = t.product.operations[0] == CUBLAS_OP_N ? t.a_layout.columns : t.a_layout.rows;
    for (int64_t i = 0; i < t.out_layout.count; ++i)
        for (int64_t column = 0; column < t.out_layout.columns; ++column)
            for (int64_t row = 0; row < t.out_layout.rows; ++row) {
                const T* a = static_cast<const T*>(t.a) + i * t.a_layout.batch + row * a_row;
                const T* b = static_cast<const T*>(t.b) + i * t.b_layout.batch + column * b_column;
                Result& out =
                    static_cast<Result*>(t.out)[i * t.out_layout.batch + column * t.out_layout.leading + row];
                Sum sum = 0;
                for (int64_t k = 0; k < inner; ++k) {
                    sum += static_cast<Sum>(a[k * a_column]) * static_cast<Sum>(b[k * b_row]);
                    if constexpr (kHalfSums) sum = static_cast<Sum>(Half(sum));
                }
                sum *= static_cast<Sum>(t.alpha);
                if (t.beta != 0) sum += static_cast<Sum>(t.beta) * static_cast<Sum>(out);
                if (bias) sum += static_cast<Sum>(bias[row]);
                out = Result(sum);
            }
}

void run_task(const Task& t) {
    const bool widens = t.out_layout.type != t.a_layout.type;
    if (t.product.compute == CUBLAS_COMPUTE_16F) return run<Half, float, Half, true>(t);
    switch (t.a_layout.type) {
        case CUDA_R_16F: return widens ? run<Half, float, float>(t) : run<Half, float>(t);
        case CUDA_R_16BF: return widens ? run<BFloat16, float, float>(t) : run<BFloat16, float>(t);
        case CUDA_R_32F: return run<float, float>(t);
        default: return run<double, double>(t);
    }
}

}  // namespace
}  // namespace rushlight::cuda

using namespace rushlight::cuda;

const char* cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "an error";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = new FakeBlas;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    // Factors of the product have the type in which it adds.
    const cudaDataType_t wanted = compute == CUBLAS_COMPUTE_64F   ? CUDA_R_64F
                                  : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F
                                                                  : CUDA_R_32F;
    if (scale != wanted) return CUBLAS_STATUS_INVALID_VALUE;
    *made = new FakeProduct{compute};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t which, const void* value,
                                              size_t size) {
    switch (which) {
        case CUBLASLT_MATMUL_DESC_TRANSA: return store(product->operations[0], value, size);
        case CUBLASLT_MATMUL_DESC_TRANSB: return store(product->operations[1], value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE: return store(product->epilogue, value, size);
        default: return store(product->bias, value, size);
    }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    *made = new FakeLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t which, const void* value,
                                                size_t size) {
    return which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? store(layout->count, value, size)
                                                       : store(layout->batch, value, size);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
    *made = new FakePreference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, size_t size) {
    switch (which) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return store(preference->workspace, value, size);
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return store(preference->schemes, value, size);
        default:
            return store(preference->alignments[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
                         size);
    }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
    for (const FakeLayout* m : {a, b, c, d})
        if (!is_valid(*m)) return CUBLAS_STATUS_INVALID_VALUE;
    if (d->type != a->type && (d->type != CUDA_R_32F || a->type == CUDA_R_64F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (product->compute == CUBLAS_COMPUTE_16F && (a->type != CUDA_R_16F || d->type != CUDA_R_16F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    found->algo = {16, preference->schemes, product->epilogue == CUBLASLT_EPILOGUE_BIAS};
    for (const uint32_t given : preference->alignments)
        found->algo.alignment = given < found->algo.alignment ? given : found->algo.alignment;
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t stream) {
    for (const void* data : {a, b, c, static_cast<const void*>(d), product->bias})
        if (reinterpret_cast<uintptr_t>(data) % algorithm->alignment != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (algorithm->has_bias != (product->bias != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
    last_compute = product->compute;
    last_schemes = algorithm->schemes;
    const auto number = [&](const void* at) {
        switch (product->compute) {
            case CUBLAS_COMPUTE_64F: return *static_cast<const double*>(at);
            case CUBLAS_COMPUTE_16F:
                return double{static_cast<float>(*static_cast<const rushlight::Half*>(at))};
            default: return double{*static_cast<const float*>(at)};
        }
    };
    const Task task{*product, a, b, d, *a_layout, *b_layout, *d_layout, number(alpha), number(beta)};
    return queue_on_host(stream, [task] { run_task(task); }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}

extern "C" {
[[gnu::visibility("default")]] int fake_cuda_last_product_tf32() {
    return last_compute == CUBLAS_COMPUTE_32F_FAST_TF32;
}
/// Returns whether the last product added in float16.
[[gnu::visibility("default")]] int fake_cuda_last_product_half_sums() {
    return last_compute == CUBLAS_COMPUTE_16F;
}
/// Returns the reduction schemes from which the algorithm of the last product was chosen.
[[gnu::visibility("default")]] unsigned fake_cuda_last_product_schemes() { return last_schemes; }
}
