#include "bodies/products.h"
#include "ops/matrices.h"

namespace rushlight::rules {
namespace {

void check_matrix(const char* op, const char* name, const Tensor& t, int64_t dims) {
    RL_CHECK(t.dim() == dims, throw_runtime, "%s(%s): needs %lld dimensions, got shape %s%s", op, name,
             (long long)dims, to_string(t.sizes()).c_str(),
             dims > 1 ? "\nhint: use matmul() for other numbers of dimensions" : "");
}

void check_inner(const char* op, const char* names, const Tensor& a, const Tensor& b, int64_t inner) {
    RL_CHECK(a.size(-1) == inner, throw_runtime,
             "%s(%s): shapes %s and %s cannot be multiplied: the inner dimensions have sizes %lld and %lld",
             op, names, to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str(), (long long)a.size(-1),
             (long long)inner);
}

// Raises for bools, unless there is nothing to multiply, in which case the result is false.
void check_no_bools(const char* op, DType dtype, IntList sizes, int64_t inner) {
    check_defined(dtype != DType::Bool || inner == 0 || std::ranges::find(sizes, 0) != sizes.end(), op,
                  dtype);
}

// Checks that `input` broadcasts to the product.
void check_addend(const char* op, const Tensor& input, IntList product) {
    bool fits = input.dim() <= static_cast<int64_t>(product.size());
    for (int64_t d = 1; fits && d <= input.dim(); ++d)
        fits = input.size(-d) == 1 || input.size(-d) == product[product.size() - static_cast<size_t>(d)];
    RL_CHECK(fits, throw_runtime,
             "%s(input): must broadcast to the shape of the product, got shape %s for a product of shape %s",
             op, to_string(input.sizes()).c_str(), to_string(product).c_str());
}

}  // namespace

Outputs mm(const Tensor& input, const Tensor& mat2) {
    check_matrix("mm", "input", input, 2);
    check_matrix("mm", "mat2", mat2, 2);
    same_dtype("mm", "input", input, "mat2", mat2);
    check_inner("mm", "input, mat2", input, mat2, mat2.size(0));
    const int64_t sizes[] = {input.size(0), mat2.size(1)};
    check_no_bools("mm", input.dtype(), sizes, input.size(1));
    Outputs out;
    out.add(sizes, input.dtype(), input.device());
    return out;
}

Outputs addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
    check_weights("addmm", mat1, beta, alpha);
    check_matrix("addmm", "mat1", mat1, 2);
    check_matrix("addmm", "mat2", mat2, 2);
    same_dtype("addmm", "mat1", mat1, "mat2", mat2);
    same_dtype("addmm", "input", input, "mat1", mat1);
    check_defined(mat1.dtype() != DType::Bool, "addmm", mat1.dtype());
    check_inner("addmm", "mat1, mat2", mat1, mat2, mat2.size(0));
    const int64_t sizes[] = {mat1.size(0), mat2.size(1)};
    check_addend("addmm", input, sizes);
    Outputs out;
    out.add(sizes, mat1.dtype(), mat1.device());
    return out;
}

Outputs bmm(const Tensor& input, const Tensor& mat2) {
    check_matrix("bmm", "input", input, 3);
    check_matrix("bmm", "mat2", mat2, 3);
    same_dtype("bmm", "input", input, "mat2", mat2);
    RL_CHECK(input.size(0) == mat2.size(0), throw_runtime,
             "bmm(input, mat2): must have the same batch size (dimension 0), got %lld and %lld",
             (long long)input.size(0), (long long)mat2.size(0));
    check_inner("bmm", "input, mat2", input, mat2, mat2.size(1));
    const int64_t sizes[] = {input.size(0), input.size(1), mat2.size(2)};
    check_no_bools("bmm", input.dtype(), sizes, input.size(2));
    Outputs out;
    out.add(sizes, input.dtype(), input.device());
    return out;
}

Outputs baddbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
    check_weights("baddbmm", batch1, beta, alpha);
    check_matrix("baddbmm", "batch1", batch1, 3);
    check_matrix("baddbmm", "batch2", batch2, 3);
    same_dtype("baddbmm", "batch1", batch1, "batch2", batch2);
    same_dtype("baddbmm", "input", input, "batch1", batch1);
    check_defined(batch1.dtype() != DType::Bool, "baddbmm", batch1.dtype());
    RL_CHECK(batch1.size(0) == batch2.size(0), throw_runtime,
             "baddbmm(batch1, batch2): must have the same batch size (dimension 0), got %lld and %lld",
             (long long)batch1.size(0), (long long)batch2.size(0));
    check_inner("baddbmm", "batch1, batch2", batch1, batch2, batch2.size(1));
    const int64_t sizes[] = {batch1.size(0), batch1.size(1), batch2.size(2)};
    check_addend("baddbmm", input, sizes);
    Outputs out;
    out.add(sizes, batch1.dtype(), batch1.device());
    return out;
}

Outputs mv(const Tensor& input, const Tensor& vec) {
    check_matrix("mv", "input", input, 2);
    check_matrix("mv", "vec", vec, 1);
    same_dtype("mv", "input", input, "vec", vec);
    check_inner("mv", "input, vec", input, vec, vec.size(0));
    const int64_t sizes[] = {input.size(0)};
    check_no_bools("mv", input.dtype(), sizes, vec.size(0));
    Outputs out;
    out.add(sizes, input.dtype(), input.device());
    return out;
}

Outputs dot(const Tensor& input, const Tensor& tensor) {
    check_matrix("dot", "input", input, 1);
    check_matrix("dot", "tensor", tensor, 1);
    same_dtype("dot", "input", input, "tensor", tensor);
    check_defined(input.dtype() != DType::Bool, "dot", input.dtype());
    check_inner("dot", "input, tensor", input, tensor, tensor.size(0));
    Outputs out;
    out.add({}, input.dtype(), input.device());
    return out;
}

Outputs linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    RL_CHECK(input.dim() > 0, throw_runtime, "linear(input): needs at least 1 dimension, got a 0-d tensor");
    RL_CHECK(weight.dim() == 2 || weight.dim() == 1, throw_runtime,
             "linear(weight): needs 2 dimensions (out, in), or one (in), got shape %s",
             to_string(weight.sizes()).c_str());
    same_dtype("linear", "input", input, "weight", weight);
    const bool is_row = weight.dim() == 1;
    const int64_t features = is_row ? 1 : weight.impl()->size(0);
    const int64_t width = weight.impl()->size(is_row ? 0 : 1);
    RL_CHECK(input.impl()->size(input.dim() - 1) == width, throw_runtime,
             "linear(input, weight): the last dimensions of shapes %s and %s must be equal, got sizes %lld "
             "and %lld",
             to_string(input.sizes()).c_str(), to_string(weight.sizes()).c_str(), (long long)input.size(-1),
             (long long)width);
    if (bias.defined()) {
        same_dtype("linear", "input", input, "bias", bias);
        const bool usual = bias.dim() == 1 && bias.impl()->size(0) == features && !is_row;
        // The bias has one element, or one for each feature. Dimensions of size 1 may precede the features.
        const int64_t most = is_row ? input.dim() - 1 : std::max<int64_t>(input.dim(), 2);
        RL_CHECK(usual || (bias.dim() <= most &&
                           (bias.numel() == 1 || (bias.size(-1) == features && bias.numel() == features))),
                 throw_runtime, "linear(bias): needs shape (%lld,) or (), got %s", (long long)features,
                 to_string(bias.sizes()).c_str());
    }
    int64_t sizes[kMaxDims];
    const auto n = static_cast<size_t>(input.dim());
    std::copy_n(input.sizes().begin(), n - 1, sizes);
    sizes[n - 1] = features;
    check_no_bools("linear", input.dtype(), IntList(sizes, n), bias.defined() ? 1 : width);
    Outputs out;
    out.add(IntList(sizes, is_row ? n - 1 : n), input.dtype(), input.device());
    return out;
}

}  // namespace rushlight::rules
