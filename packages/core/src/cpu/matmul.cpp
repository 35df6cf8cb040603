#include "cpu/matmul.h"

#include <cstring>
#include <utility>

#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "rushlight/complex.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// A matrix or a batch of matrices: the data, and the strides between matrices, rows and columns.
struct Operand {
    const void* data;
    int64_t batch, row, col;
};

// Returns the last two dimensions of v as a matrix. A vector becomes a matrix of one row.
Operand matrix(const View& v) {
    return {v.data, v.ndim > 2 ? v.stride(0) : 0, v.ndim > 1 ? v.stride(-2) : 0, v.stride(-1)};
}

// Returns the operand for `input` of addmm and baddbmm, which is broadcast along missing dimensions and dimensions
// of size 1. The kernels read rows whose stride is 0 or 1; other rows are copied.
Operand addend(KernelContext& ctx, const View& given) {
    View v = given;
    if (v.ndim > 0 && v.size(-1) > 1 && v.stride(-1) != 1 && v.stride(-1) != 0)
        v = contiguous_in(ctx, v, v.dtype);
    auto stride = [&](int from_last) {
        const int d = v.ndim - from_last;
        return d < 0 || v.sizes[d] == 1 ? 0 : v.strides[d];
    };
    return {v.data, stride(3), stride(2), stride(1)};
}

struct Product {
    int64_t count, m, n, k;
    Operand a, b, out, init;  // init.data is null without an addend
    double alpha, beta;
};

bool is_zero(Complex<double> z) { return z.re == 0 && z.im == 0; }

template <class T, class B = T>
Gemm<T, B> typed(const Product& p) {
    Gemm<T, B> g{p.m,
                 p.n,
                 p.k,
                 static_cast<const T*>(p.a.data),
                 p.a.row,
                 p.a.col,
                 static_cast<const B*>(p.b.data),
                 p.b.row,
                 p.b.col,
                 static_cast<T*>(const_cast<void*>(p.out.data)),
                 p.out.row,
                 static_cast<T>(p.alpha),
                 static_cast<T>(p.beta),
                 static_cast<const T*>(p.init.data),
                 p.init.row,
                 p.init.col};
    if (p.beta == 0) g.init = nullptr;
    return g;
}

// Changes a product that has one column into a product that has one row: out^T = b^T a^T.
void turn_columns(Product& p) {
    if (p.n != 1 || p.m == 1 || (p.init.data != nullptr && p.init.row > 1)) return;
    const Operand a = p.a, b = p.b;
    p.a = {b.data, b.batch, b.col, b.row};
    p.b = {a.data, a.batch, a.col, a.row};
    p.n = p.m;
    p.m = 1;
    p.init.col = p.init.row;
    p.init.row = 0;
    p.out.row = p.n;
}

// The stride of a dimension of size 1 may have any value. Sets it to the value that the kernels recognise as
// contiguous.
void normalise(Product& p) {
    if (p.m == 1) p.a.row = p.k * p.a.col;
    if (p.k == 1) {
        p.a.col = 1;
        p.b.row = p.n;
    }
    if (p.n == 1) p.b.col = p.b.row == 1 ? p.k : 1;
}

void multiply_floating(KernelContext& ctx, DType dtype, const Product& p) {
    const GemmKernels& kernels = gemm_kernels();
    if (dtype == DType::Float32) {
        if (p.count == 1) return kernels.gemm_f32(ctx, typed<float>(p));
        kernels.batched_f32(ctx, typed<float>(p), p.count, p.a.batch, p.b.batch, p.out.batch, p.init.batch);
    } else {
        if (p.count == 1) return kernels.gemm_f64(ctx, typed<double>(p));
        kernels.batched_f64(ctx, typed<double>(p), p.count, p.a.batch, p.b.batch, p.out.batch, p.init.batch);
    }
}

void multiply_integers(KernelContext& ctx, DType dtype, const Product& p) {
    const IntegerGemm g{p.count,
                        p.m,
                        p.n,
                        p.k,
                        p.a.data,
                        p.a.batch,
                        p.a.row,
                        p.a.col,
                        p.b.data,
                        p.b.batch,
                        p.b.row,
                        p.b.col,
                        const_cast<void*>(p.out.data),
                        static_cast<int64_t>(p.alpha),
                        static_cast<int64_t>(p.beta),
                        p.init.data,
                        p.init.batch,
                        p.init.row,
                        p.init.col};
    gemm_kernels().integer(ctx, g, dtype);
}

// --- complex numbers ----------------------------------------------------------------------------------------------

// Note [Complex products]
// A row of complex numbers is a row of twice as many real numbers, in which real and imaginary parts alternate. So a
// complex product (m, k) @ (k, n) is a real product (m, 2k) @ (2k, 2n), for which each element of b is replaced by the
// block
//
//      re  im
//     -im  re
//
// Only b is copied. If a has few rows, it is better to copy a. If the columns of b are contiguous, the transposed product
// b^T @ a^T is computed. If its rows are, the real parts of a are stacked on its imaginary parts, both are multiplied by
// the real rows of b, (2m, k) @ (k, 2n), and the two halves are combined.

Operand as_real(const Operand& v) { return {v.data, 2 * v.batch, 2 * v.row, 1}; }

// Returns `count` matrices whose rows are contiguous.
Operand with_contiguous_rows(KernelContext& ctx, DType dtype, const Operand& v, int64_t count, int64_t rows,
                             int64_t columns) {
    if (v.col == 1) return v;
    const int64_t matrices = v.batch == 0 ? 1 : count;
    const int64_t sizes[] = {matrices, rows, columns}, strides[] = {v.batch, v.row, v.col};
    const View view{const_cast<void*>(v.data), sizes, strides, matrices * rows * columns, 3, dtype, 0};
    return {contiguous_copy(ctx, view, dtype).data, v.batch == 0 ? 0 : rows * columns, columns, 1};
}

// Returns `count` matrices (k, n) as real matrices (2k, 2n) of blocks: Note [Complex products]. If the columns of the
// matrices are contiguous, so are the columns of the result; otherwise, its rows are.
template <class T>
Operand as_blocks(KernelContext& ctx, const Operand& v, int64_t count, int64_t k, int64_t n) {
    const bool by_columns = v.row == 1 && v.col != 1;
    const int64_t lines = by_columns ? n : k, length = by_columns ? k : n;
    const int64_t next_line = by_columns ? v.col : v.row, step = by_columns ? v.row : v.col;
    const int64_t matrices = v.batch == 0 ? 1 : count;
    const auto* const in = static_cast<const Complex<T>*>(v.data);
    auto* const blocks = scratch<Complex<T>>(ctx, 2 * matrices * k * n);
    parallel_for(0, matrices * lines, (1 << 13) / (length + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Complex<T>* const line = in + i / lines * v.batch + i % lines * next_line;
            Complex<T>* const first = blocks + 2 * i * length;
            Complex<T>* const second = first + length;
            for (int64_t j = 0; j < length; ++j) {
                const Complex<T> z = line[j * step];
                first[j] = by_columns ? Complex<T>(z.re, -z.im) : z;
                second[j] = by_columns ? Complex<T>(z.im, z.re) : Complex<T>(-z.im, z.re);
            }
        }
    });
    const int64_t batch = v.batch == 0 ? 0 : 4 * k * n;
    return by_columns ? Operand{blocks, batch, 1, 2 * k} : Operand{blocks, batch, 2 * n, 1};
}

// Computes a complex product whose factors and addend are real numbers.
template <class T>
void multiply_blocks(KernelContext& ctx, DType dtype, const Product& p) {
    const Operand a = with_contiguous_rows(ctx, dtype, p.a, p.count, p.m, p.k);
    Product real{p.count,        p.m,
                 2 * p.n,        2 * p.k,
                 as_real(a),     as_blocks<T>(ctx, p.b, p.count, p.k, p.n),
                 as_real(p.out), as_real(p.init),
                 p.alpha,        p.beta};
    multiply_floating(ctx, real_dtype(dtype), real);
}

// Computes out = a @ b, where the rows of b are contiguous.
template <class T>
void multiply_stacked(KernelContext& ctx, DType dtype, const Product& p) {
    const int64_t matrices = p.a.batch == 0 ? 1 : p.count, size = p.m * p.n;
    T* const parts = scratch<T>(ctx, 2 * matrices * p.m * p.k);
    for (int64_t i = 0; i < matrices * p.m; ++i) {
        const auto* row = static_cast<const Complex<T>*>(p.a.data) + i / p.m * p.a.batch + i % p.m * p.a.row;
        T* const re = parts + (i / p.m * 2 * p.m + i % p.m) * p.k;
        T* const im = re + p.m * p.k;
        for (int64_t j = 0; j < p.k; ++j) re[j] = row[j * p.a.col].re, im[j] = row[j * p.a.col].im;
    }
    auto* const halves = scratch<Complex<T>>(ctx, 2 * p.count * size);
    Product real{p.count,
                 2 * p.m,
                 2 * p.n,
                 p.k,
                 {parts, p.a.batch == 0 ? 0 : 2 * p.m * p.k, p.k, 1},
                 as_real(p.b),
                 {halves, 4 * size, 2 * p.n, 1},
                 {nullptr, 0, 0, 0},
                 1,
                 0};
    multiply_floating(ctx, real_dtype(dtype), real);
    auto* const out = static_cast<Complex<T>*>(const_cast<void*>(p.out.data));
    for (int64_t matrix = 0; matrix < p.count; ++matrix) {
        const Complex<T>* const by_re = halves + 2 * matrix * size;
        const Complex<T>* const by_im = by_re + size;
        for (int64_t i = 0; i < size; ++i)
            out[matrix * size + i] = {by_re[i].re - by_im[i].im, by_re[i].im + by_im[i].re};
    }
}

// Computes out = alpha * product + beta * init.
template <class T>
void scale_and_add(const Product& p, const Operand& product, Complex<T> beta, Complex<T> alpha) {
    auto* const out = static_cast<Complex<T>*>(const_cast<void*>(p.out.data));
    const auto* const init = static_cast<const Complex<T>*>(p.init.data);
    // Returns number * x. If the number is real, the real and the imaginary part of x are multiplied separately, so
    // that an infinite part does not make the other part NaN.
    const auto scaled = [](Complex<T> number, Complex<T> x) {
        return number.im == 0 ? Complex<T>(number.re * x.re, number.re * x.im) : number * x;
    };
    parallel_for(0, p.count * p.m, (1 << 13) / (p.n + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t matrix = i / p.m, row = i % p.m;
            const auto* const factor =
                static_cast<const Complex<T>*>(product.data) + matrix * product.batch + row * product.row;
            const auto* const addend = init ? init + matrix * p.init.batch + row * p.init.row : nullptr;
            for (int64_t c = 0; c < p.n; ++c) {
                const Complex<T> x = scaled(alpha, factor[c * product.col]);
                out[i * p.n + c] = addend ? x + scaled(beta, addend[c * p.init.col]) : x;
            }
        }
    });
}

template <class T>
void multiply_complex(KernelContext& ctx, DType dtype, const Product& p, Complex<double> beta,
                      Complex<double> alpha) {
    const bool few_rows = 2 * p.m <= p.k, transposed = few_rows && p.b.row == 1 && p.b.col != 1;
    const bool stacked = few_rows && !transposed && p.b.col == 1;
    const bool scales = p.init.data || alpha.re != 1 || alpha.im != 0;
    const bool real = alpha.im == 0 && beta.im == 0 && (!p.init.data || p.init.col == 1);
    Product product = p;
    if (!transposed && !stacked && real) {
        product.alpha = alpha.re;
        product.beta = beta.re;
        return multiply_blocks<T>(ctx, dtype, product);
    }
    product.alpha = 1;
    product.beta = 0;
    product.init = {nullptr, 0, 0, 0};
    if (transposed) {
        product.a = {p.b.data, p.b.batch, p.b.col, p.b.row};
        product.b = {p.a.data, p.a.batch, p.a.col, p.a.row};
        product.m = p.n;
        product.n = p.m;
    }
    if (scales || (transposed && p.m > 1)) product.out.data = scratch<Complex<T>>(ctx, p.count * p.m * p.n);
    product.out.row = product.n;
    if (stacked) multiply_stacked<T>(ctx, dtype, product);
    else multiply_blocks<T>(ctx, dtype, product);
    if (product.out.data == p.out.data) return;
    Operand result = product.out;
    if (transposed) std::swap(result.row, result.col);
    scale_and_add<T>(p, result, static_cast<Complex<T>>(beta), static_cast<Complex<T>>(alpha));
}

// --- pairs of bfloat16: Note [Pairs of bfloat16] -----------------------------------------------------------------

// Returns `count` matrices of `rows` rows of `k` numbers as matrices of pairs, which run along k. If the numbers of
// each row are adjacent and suitably aligned, the memory already consists of pairs and is not copied. Otherwise every
// two steps along k are copied into a pair. If the rows are adjacent (stride 1), the pairs of different rows are
// adjacent, too.
Operand paired(KernelContext& ctx, const Operand& v, int64_t count, int64_t rows, int64_t stride,
               int64_t step, int64_t k) {
    const auto* in = static_cast<const uint16_t*>(v.data);
    if (step == 1 && k % 2 == 0 && stride % 2 == 0 && v.batch % 2 == 0 &&
        reinterpret_cast<uintptr_t>(in) % 4 == 0)
        return {in, v.batch / 2, stride / 2, 1};
    const int64_t pairs = (k + 1) / 2, matrices = v.batch == 0 ? 1 : count, size = rows * pairs;
    float* out = scratch<float>(ctx, matrices * size);
    if (stride != 1) {  // copy row by row
        parallel_for(0, matrices * rows, (1 << 15) / (k + 1) + 1, [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) {
                const uint16_t* from = in + i / rows * v.batch + i % rows * stride;
                auto* to = reinterpret_cast<uint32_t*>(out + i * pairs);
                for (int64_t p = 0; p < k / 2; ++p)
                    to[p] = from[2 * p * step] | static_cast<uint32_t>(from[(2 * p + 1) * step]) << 16;
                if (k % 2) to[k / 2] = from[(k - 1) * step];
            }
        });
        return {out, v.batch == 0 ? 0 : size, pairs, 1};
    }
    const auto* zeros = static_cast<const uint16_t*>(nullptr);
    if (k % 2) {
        auto* made = scratch<uint16_t>(ctx, rows);
        std::memset(made, 0, static_cast<size_t>(rows) * sizeof(uint16_t));
        zeros = made;
    }
    parallel_for(0, matrices * pairs, (1 << 15) / (rows + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            const uint16_t* even = in + i / pairs * v.batch + 2 * (i % pairs) * step;
            const bool alone = 2 * (i % pairs) + 1 == k;
            gemm_kernels().pair_up(out + i * rows, even, alone ? zeros : even + step, rows);
        }
    });
    return {out, v.batch == 0 ? 0 : size, 1, rows};
}

// Products smaller than this are faster if the operands are converted to float32.
constexpr int64_t kLeastPairs = 32 * 32 * 32;

bool multiplies_pairs(DType dtype, const Product& p) {
    return dtype == DType::BFloat16 && p.m * p.n * p.k >= kLeastPairs && p.k >= 2 &&
           gemm_kernels().has_pairs();
}

void multiply_pairs(KernelContext& ctx, Product p) {
    // The columns of b are passed as rows, because pairs run along k.
    const Operand a = paired(ctx, p.a, p.count, p.m, p.a.row, p.a.col, p.k),
                  b = paired(ctx, p.b, p.count, p.n, p.b.col, p.b.row, p.k);
    p.a = a;
    p.b = {b.data, b.batch, b.col, b.row};
    p.k = (p.k + 1) / 2;
    Gemm<float> g = typed<float>(p);
    g.pairs = true;
    if (p.count == 1) return gemm_kernels().gemm_f32(ctx, g);
    gemm_kernels().batched_f32(ctx, g, p.count, p.a.batch, p.b.batch, p.out.batch, p.init.batch);
}

// --- tiles of bfloat16: Note [Tiles] in kernels/gemm_tiles.h --------------------------------------------------------

// A product of few rows takes longer to pack than to compute.
bool multiplies_tiles(const Product& p) {
    return p.count > 0 && p.m > kFewRows && p.m * p.n * p.k >= kLeastPairs && gemm_kernels().has_tiles();
}

void multiply_tiles(KernelContext& ctx, const Product& p) {
    const TileGemm g{p.m,
                     p.n,
                     p.k,
                     static_cast<const uint16_t*>(p.a.data),
                     p.a.row,
                     p.a.col,
                     static_cast<const uint16_t*>(p.b.data),
                     p.b.row,
                     p.b.col,
                     static_cast<uint16_t*>(const_cast<void*>(p.out.data)),
                     p.out.row,
                     static_cast<float>(p.alpha),
                     static_cast<float>(p.beta),
                     p.beta == 0 ? nullptr : static_cast<const uint16_t*>(p.init.data),
                     p.init.row,
                     p.init.col};
    gemm_kernels().batched_tiles(ctx, g, p.count, p.a.batch, p.b.batch, p.out.batch, p.init.batch);
}

// --- few rows beside a matrix of a half type ----------------------------------------------------------------------

// Below this number of elements of the matrix, a conversion costs little.
constexpr int64_t kLeastHalves = 1 << 10;

bool converts_while_reading(const Product& p) {
    return p.m <= kFewRows && p.n * p.k >= kLeastHalves && (p.b.row == 1 || p.b.col == 1);
}

// Returns the rows of `count` matrices as row-major float32.
template <class B>
Operand widened_rows(KernelContext& ctx, const Operand& v, int64_t count, int64_t rows, int64_t columns) {
    const int64_t matrices = v.batch == 0 ? 1 : count;
    float* out = scratch<float>(ctx, matrices * rows * columns);
    for (int64_t i = 0; i < matrices * rows; ++i) {
        const B* from = static_cast<const B*>(v.data) + i / rows * v.batch + i % rows * v.row;
        for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = static_cast<float>(from[j * v.col]);
    }
    return {out, v.batch == 0 ? 0 : rows * columns, columns, 1};
}

// The operands of `p` have elements of type B, its addend and its output are float32.
template <class B>
void multiply_few_rows(KernelContext& ctx, Product p,
                       void (*kernel)(const Gemm<float, B>&, int64_t, int64_t, int64_t, int64_t, int64_t)) {
    p.a = widened_rows<B>(ctx, p.a, p.count, p.m, p.k);
    kernel(typed<float, B>(p), p.count, p.a.batch, p.b.batch, p.out.batch, p.init.batch);
}

void multiply_few_rows(KernelContext& ctx, DType dtype, const Product& p) {
    if (dtype == DType::Float16) multiply_few_rows<Half>(ctx, p, gemm_kernels().few_rows_f16);
    else multiply_few_rows<BFloat16>(ctx, p, gemm_kernels().few_rows_bf16);
}

Product product_of(KernelContext& ctx, const View& out, const View* input, const View& a, const View& b,
                   bool b_transposed, double beta, double alpha) {
    Product p;
    p.a = matrix(a);
    p.b = matrix(b);
    if (b_transposed) p.b = {p.b.data, p.b.batch, p.b.col, p.b.row};
    p.count = out.ndim > 2 ? out.size(0) : 1;
    p.m = out.ndim > 1 ? out.size(-2) : 1;
    p.n = out.size(-1);
    // As in BLAS, a product that is multiplied by 0 is not computed, so that infinities in it do not become NaN.
    p.k = alpha == 0 ? 0 : a.size(-1);
    p.out = {out.data, p.m * p.n, p.n, 1};
    p.init = input == nullptr || beta == 0 ? Operand{nullptr, 0, 0, 0} : addend(ctx, *input);
    p.alpha = alpha;
    p.beta = beta;
    normalise(p);
    turn_columns(p);
    return p;
}

void multiply_scaled(KernelContext& ctx, const View& out, const View* input, const View& a, const View& b,
                     bool b_transposed, Complex<double> beta, Complex<double> alpha);

void multiply(KernelContext& ctx, const View& out, const View* input, const View& a, const View& b,
              bool b_transposed, double beta, double alpha) {
    if (is_complex(out.dtype)) return multiply_scaled(ctx, out, input, a, b, b_transposed, beta, alpha);
    if (is_reduced(out.dtype)) {
        if (out.dtype == DType::BFloat16 && (input == nullptr || input->dtype == DType::BFloat16)) {
            const Product p = product_of(ctx, out, input, a, b, b_transposed, beta, alpha);
            if (multiplies_tiles(p)) return multiply_tiles(ctx, p);
        }
        const WidenedOut wide(ctx, out);
        const View init = input == nullptr ? View{} : widened(ctx, *input),
                   *added = input == nullptr ? nullptr : &init;
        const Product p = product_of(ctx, wide.view(), added, a, b, b_transposed, beta, alpha);
        if (converts_while_reading(p)) multiply_few_rows(ctx, out.dtype, p);
        else if (multiplies_pairs(out.dtype, p)) multiply_pairs(ctx, p);
        else multiply(ctx, wide.view(), added, widened(ctx, a), widened(ctx, b), b_transposed, beta, alpha);
        return wide.finish();
    }
    const Product p = product_of(ctx, out, input, a, b, b_transposed, beta, alpha);
    if (out.dtype == DType::Float32 || out.dtype == DType::Float64)
        return multiply_floating(ctx, out.dtype, p);
    if (out.dtype == DType::Bool && (out.numel == 0 || (p.k == 0 && !p.init.data))) return clear(out);
    RL_CHECK(is_integral(out.dtype), throw_not_implemented, "matmul: no kernel for dtype %s on the CPU",
             name(out.dtype));
    multiply_integers(ctx, out.dtype, p);
}

void multiply_scaled(KernelContext& ctx, const View& out, const View* input, const View& a, const View& b,
                     bool b_transposed, Complex<double> beta, Complex<double> alpha) {
    if (!is_complex(out.dtype)) return multiply(ctx, out, input, a, b, b_transposed, beta.re, alpha.re);
    const Product p =
        product_of(ctx, out, is_zero(beta) ? nullptr : input, a, b, b_transposed, 1, is_zero(alpha) ? 0 : 1);
    if (out.dtype == DType::Complex64) multiply_complex<float>(ctx, out.dtype, p, beta, alpha);
    else multiply_complex<double>(ctx, out.dtype, p, beta, alpha);
}

// Returns a view (..., k) as a matrix. A view that is row-major or has two dimensions is not copied.
View as_matrix(KernelContext& ctx, const View& v, int64_t* shape, int64_t* strides) {
    View m = v;
    const int64_t k = v.size(-1);
    shape[0] = k == 0 ? 0 : v.numel / k;
    shape[1] = k;
    if (v.ndim == 2) return v;
    if (!v.contiguous) m = contiguous_in(ctx, v, v.dtype);
    strides[0] = k;
    strides[1] = 1;
    m.sizes = shape;
    m.strides = strides;
    m.ndim = 2;
    return m;
}

}  // namespace

void mm(KernelContext& ctx, const View& out, const View& a, const View& b) {
    multiply(ctx, out, nullptr, a, b, false, 0, 1);
}

void addmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
           const Param& beta, const Param& alpha) {
    multiply_scaled(ctx, out, &input, a, b, false, beta, alpha);
}

void bmm(KernelContext& ctx, const View& out, const View& a, const View& b) {
    multiply(ctx, out, nullptr, a, b, false, 0, 1);
}

void baddbmm(KernelContext& ctx, const View& out, const View& input, const View& a, const View& b,
             const Param& beta, const Param& alpha) {
    multiply_scaled(ctx, out, &input, a, b, false, beta, alpha);
}

void linear(KernelContext& ctx, const View& out, const View& input, const View& weight, const View& bias) {
    int64_t in_shape[2], in_strides[2], out_shape[2], out_strides[2];
    const View x = as_matrix(ctx, input, in_shape, in_strides);
    View y, w = weight, row = bias;
    const int64_t column_shape[] = {out.numel, 1}, column_strides[] = {1, 1};
    const int64_t one_shape[] = {1, weight.numel}, one_strides[] = {0, weight.stride(-1)};
    if (weight.ndim == 1) {  // shape (in,): the result has no feature dimension
        y = View{out.data, column_shape, column_strides, out.numel, 2, out.dtype, 1};
        w = View{weight.data, one_shape, one_strides, weight.numel, 2, weight.dtype, 0};
    } else {
        y = as_matrix(ctx, out, out_shape, out_strides);
    }
    const int64_t length[] = {w.size(0)}, step[] = {bias.defined() && bias.numel == 1 ? 0 : 1};
    if (bias.defined() && (bias.ndim != 1 || bias.numel != length[0]))  // shape (1, n), or one element
        row = View{contiguous_in(ctx, bias).data, length, step, length[0], 1, bias.dtype, step[0] == 1};
    multiply(ctx, y, bias.defined() ? &row : nullptr, x, w, true, 1, 1);
}

void mv(KernelContext& ctx, const View& out, const View& a, const View& x) {
    // Computed as the row x times the transpose of a.
    multiply(ctx, out, nullptr, x, a, true, 0, 1);
}

void dot(KernelContext& ctx, const View& out, const View& x, const View& y) {
    if (is_reduced(out.dtype)) {
        const WidenedOut wide(ctx, out);
        dot(ctx, wide.view(), widened(ctx, x), widened(ctx, y));
        return wide.finish();
    }
    const int64_t n = x.numel;
    if (is_complex(out.dtype)) {
        const int64_t row[] = {1, n};
        int64_t x_strides[] = {0, x.stride(0)}, y_strides[] = {0, y.stride(0)};
        const int64_t one[] = {1}, step[] = {1};
        const View result{out.data, one, step, 1, 1, out.dtype, 1};
        const View a{x.data, row + 1, x_strides + 1, n, 1, x.dtype, 0},
            b{y.data, row, y_strides, n, 2, y.dtype, 0};
        multiply(ctx, result, nullptr, a, b, true, 0, 1);
    } else if (out.dtype == DType::Float32) {
        *out.as<float>() = gemm_kernels().dot_f32(n, x.as<float>(), x.stride(0), y.as<float>(), y.stride(0));
    } else if (out.dtype == DType::Float64) {
        *out.as<double>() =
            gemm_kernels().dot_f64(n, x.as<double>(), x.stride(0), y.as<double>(), y.stride(0));
    } else {
        RL_CHECK(is_integral(out.dtype), throw_not_implemented, "dot: no kernel for dtype %s on the CPU",
                 name(out.dtype));
        multiply_integers(ctx, out.dtype,
                          {1,
                           1,
                           1,
                           n,
                           {x.data, 0, 0, x.stride(0)},
                           {y.data, 0, y.stride(0), 0},
                           {out.data, 0, 0, 0},
                           {nullptr, 0, 0, 0},
                           1,
                           0});
    }
}

}  // namespace rushlight::cpu
