// Attention in blocks of targets and sources. The scores of one block are computed by a matrix product, converted
// to weights in place, and multiplied by the values.
#include "cpu/attention_kernels.h"

#include <type_traits>

#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "cpu/kernels/softmax_rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t product_scratch(const Gemm<float>& g) { return gemm_kernels().scratch_f32(g); }
int64_t product_scratch(const Gemm<double>& g) { return gemm_kernels().scratch_f64(g); }
void multiply(const Gemm<float>& g, float* scratch) { gemm_kernels().serial_f32(g, scratch); }
void multiply(const Gemm<double>& g, double* scratch) { gemm_kernels().serial_f64(g, scratch); }

// A matrix and the strides between rows and columns.
template <class E>
struct Matrix {
    const E* data;
    int64_t row, column;
    Matrix transposed() const { return {data, column, row}; }
};

// Computes c = alpha a b, or c += alpha a b. a is (m, k), b is (k, n), and c is row-major.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, T alpha, bool add,
              T* scratch) {
    multiply(Gemm<T>{m, n, k, a.data, a.row, a.column, b.data, b.row, b.column, c, n, alpha, T(1),
                     add ? c : nullptr, n, 1},
             scratch);
}
void multiply(int64_t m, int64_t n, int64_t k, Matrix<BFloat16> a, Matrix<BFloat16> b, float* c, float alpha,
              bool add, float* scratch) {
    const auto bits = [](const BFloat16* x) { return reinterpret_cast<const uint16_t*>(x); };
    TileGemm g{m, n,     k, bits(a.data), a.row, a.column, bits(b.data), b.row, b.column, nullptr,
               n, alpha, 1, nullptr,      0,     0};
    g.wide = c;
    g.add = add;
    gemm_kernels().serial_tiles(g, scratch);
}

// Returns the number of elements of scratch memory for such a product.
template <class T, class E>
int64_t product_scratch(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
    int64_t size;
    if constexpr (std::is_same_v<E, BFloat16>) {
        size = gemm_kernels().scratch_tiles(m, n, k) / static_cast<int64_t>(sizeof(T)) + 1;
    } else {
        size = product_scratch(Gemm<T>{m, n, k, nullptr, !a_transposed ? 0 : 1, !a_transposed ? 1 : 0,
                                       nullptr, b_transposed ? 1 : 0, b_transposed ? 0 : 1, nullptr, 0, T(1),
                                       T(0), nullptr, 0, 0});
    }
    return (size + 15) / 16 * 16;
}

// Returns `count` numbers in the type of the operands. They are rounded into `memory` if the types differ.
template <class E, class T>
const E* as_operand(const T* x, int64_t count, T* memory) {
    if constexpr (std::is_same_v<E, T>) {
        return x;
    } else {
        E* to = reinterpret_cast<E*>(memory);
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = E(x[i]);
        return to;
    }
}

// Returns the sum of x[i] * y[i].
template <class T, class E>
T dot_of_rows(const E* x, const E* y, int64_t n) {
    T sum = T(0);
    if constexpr (std::is_same_v<E, T>) {
        row_sums<T, 1>(n, &sum, [&](int64_t c, auto lanes, Vec<T>* v) {
            v[0] = load(x + c, lanes) * load(y + c, lanes);
        });
    } else {
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < n; ++c) sum += static_cast<T>(x[c]) * static_cast<T>(y[c]);
    }
    return sum;
}

template <class T>
T lowest() {
    return -static_cast<T>(__builtin_inf());
}

// Sizes that keep a block of scores and its operands in the second-level cache.
constexpr int64_t kTargets = 64, kSources = 384;

// A block of scores of one head, whose first target is i and whose first source is j.
template <class T, class E>
struct Block {
    const Attention<T, E>& a;
    int64_t b, h, i, j, rows, columns;
    T* scores;  // (rows, columns)
    T* scratch;  // for matrix products

    int64_t key_head() const { return h * a.key_heads / a.heads; }
    Matrix<E> query() const { return {a.query.at(b, h) + i * a.query.row, a.query.row, 1}; }
    Matrix<E> key() const { return {a.key.at(b, key_head()) + j * a.key.row, a.key.row, 1}; }
    Matrix<E> value() const { return {a.value.at(b, key_head()) + j * a.value.row, a.value.row, 1}; }

    // The number of the block's sources to which target `row` may attend.
    int64_t visible(int64_t row) const { return a.causal ? max(0, min(columns, i + row + 1 - j)) : columns; }

    void compute_scores() const {
        multiply(rows, columns, a.depth, query(), key().transposed(), scores, a.scale, false, scratch);
        if (a.mask.data == nullptr) return;
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t at = b * a.mask.batch + h * a.mask.head + (i + r) * a.mask.row + j * a.mask.column;
            T* entries = scores + r * columns;
            const int64_t step = a.mask.column;
            if (a.mask.is_bool) {
                // The mask is read as bytes. Reading a bool whose value is not 0 or 1 would be undefined behaviour,
                // and bools prevent vectorisation.
                const uint8_t* mask = static_cast<const uint8_t*>(a.mask.data) + at;
                if (step == 1) {
#pragma GCC ivdep
                    for (int64_t c = 0; c < columns; ++c)
                        entries[c] = mask[c] != 0 ? entries[c] : lowest<T>();
                } else {
                    for (int64_t c = 0; c < columns; ++c)
                        entries[c] = mask[c * step] != 0 ? entries[c] : lowest<T>();
                }
            } else {
                const T* mask = static_cast<const T*>(a.mask.data) + at;
                if (step == 1) {
                    map_row(entries, columns, [&](int64_t c, auto lanes) {
                        return load(entries + c, lanes) + load(mask + c, lanes);
                    });
                } else {
                    for (int64_t c = 0; c < columns; ++c) entries[c] += mask[c * step];
                }
            }
        }
    }

    // Writes the dropout factors of the first n weights of a row. The factor of a dropped weight is 0.
    void factors(int64_t row, int64_t n, T* to) const {
        const uint8_t* kept = a.kept + ((b * a.heads + h) * a.targets + i + row) * a.sources + j;
        const T share = a.kept_scale;
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) to[c] = kept[c] ? share : T(0);
    }

    void hide(int64_t row) const {
        T* entries = scores + row * columns;
        const int64_t n = visible(row);
        __builtin_memset(entries + n, 0, sizeof(T) * static_cast<size_t>(columns - n));
    }
};

// Returns the number of sources in a block.
template <class T, class E>
int64_t source_step(const Attention<T, E>& a) {
    return min(a.sources, kSources);
}

// Returns the number of elements of scratch memory for a copy of `count` numbers in the type of the operands.
template <class T, class E>
int64_t operand_scratch(int64_t count) {
    return std::is_same_v<T, E> ? 0 : (count + 15) / 16 * 16;
}

template <class T, class E>
int64_t forward_scratch(const Attention<T, E>& a, int64_t rows, int64_t columns) {
    return max(product_scratch<T, E>(rows, columns, a.depth, false, true),
               product_scratch<T, E>(rows, a.width, columns, false, false));
}

// Runs body(task, memory) for all tasks, where each thread has its own memory.
template <class T, class Body>
void run_tasks(KernelContext& ctx, int64_t tasks, int64_t work, int64_t size, Body&& body) {
    constexpr int64_t kPerThread = 1 << 16;  // multiply-adds
    const int64_t workers = max(1, min(min(num_threads(), tasks), tasks * work / kPerThread));
    T* memory = scratch<T>(ctx, size * workers);
    parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
        for (int64_t w = first; w < last; ++w) {
            for (int64_t t = tasks * w / workers; t < tasks * (w + 1) / workers; ++t)
                body(t, memory + w * size);
        }
    });
}

// --- forward -----------------------------------------------------------------------------------------------

// One step of the online softmax. Replaces each score by e^(score - top), where top is the largest score so far in
// its row, rescales the previous sums and outputs to the new top, and adds to the sums.
template <class T, class E>
void carry_softmax(const Block<T, E>& block, T* top, T* total, T* out, int64_t width) {
    for (int64_t r = 0; r < block.rows; ++r) {
        T* entries = block.scores + r * block.columns;
        const int64_t n = block.visible(r);
        const T now = row_largest(entries, n), higher = now > top[r] || now != now ? now : top[r];
        block.hide(r);
        if (higher == lowest<T>()) {  // no source is attended to yet
            for (int64_t c = 0; c < n; ++c) entries[c] = T(0);
            continue;
        }
        T sum;
        row_sums<T, 1>(n, &sum, [&](int64_t c, auto lanes, Vec<T>* v) {
            v[0] = keep(exp<T>(load(entries + c, lanes) - higher), lanes);
            store(entries + c, v[0], lanes);
        });
        if (block.a.kept != nullptr) {
            T kept[kSources];
            block.factors(r, n, kept);
            map_row(entries, n,
                    [&](int64_t c, auto lanes) { return load(entries + c, lanes) * load(kept + c, lanes); });
        }
        const T factor = math::exp(top[r] - higher);
        top[r] = higher;
        total[r] = total[r] * factor + sum;
        if (factor == T(1) || block.j == 0) continue;
        T* to = out + r * width;
        map_row(to, width, [&](int64_t c, auto lanes) { return load(to + c, lanes) * factor; });
    }
}

template <class T, class E>
void forward(KernelContext& ctx, const Attention<T, E>& a, T* out, T* log_sum) {
    const int64_t step = source_step(a), blocks = (a.targets + kTargets - 1) / kTargets;
    const int64_t height = (a.targets + blocks - 1) / blocks;
    const int64_t product = forward_scratch(a, height, step), scores = (height * step + 15) / 16 * 16,
                  rounded = operand_scratch<T, E>(height * step);
    run_tasks<T>(ctx, a.batch * a.heads * blocks, height * a.sources * (a.depth + a.width),
                 product + rounded + scores + 2 * kTargets, [&](int64_t task, T* memory) {
                     const int64_t head = task / blocks, i = task % blocks * height;
                     Block<T, E> block{a,
                                       head / a.heads,
                                       head % a.heads,
                                       i,
                                       0,
                                       min(height, a.targets - i),
                                       step,
                                       memory + product + rounded,
                                       memory};
                     T* top = memory + product + rounded + scores;
                     T* total = top + kTargets;
                     T* to = out + (head * a.targets + i) * a.width;
                     for (int64_t r = 0; r < block.rows; ++r) {
                         top[r] = lowest<T>();
                         total[r] = T(0);
                     }
                     const int64_t end = a.causal ? min(a.sources, i + block.rows) : a.sources;
                     for (block.j = 0; block.j < end; block.j += step) {
                         block.columns = min(step, end - block.j);
                         block.compute_scores();
                         carry_softmax(block, top, total, to, a.width);
                         const E* weights =
                             as_operand<E>(block.scores, block.rows * block.columns, memory + product);
                         multiply(block.rows, a.width, block.columns, Matrix<E>{weights, block.columns, 1},
                                  block.value(), to, T(1), block.j > 0, memory);
                     }
                     for (int64_t r = 0; r < block.rows; ++r) {
                         const T share = total[r] == T(0) ? T(0) : T(1) / total[r];
                         T* entries = to + r * a.width;
                         map_row(entries, a.width,
                                 [&](int64_t c, auto lanes) { return load(entries + c, lanes) * share; });
                         if (log_sum != nullptr)
                             log_sum[head * a.targets + i + r] = top[r] + math::log(total[r]);
                     }
                 });
}

// --- backward ----------------------------------------------------------------------------------------------

// Let P be the weights, M the dropout factors, and D the row sums of grad_out * out. Then grad_value = (P M)^T
// grad_out, dS = scale P (M grad_out value^T - D), grad_query = dS key and grad_key = dS^T query. A task computes the
// gradients of one key head and of all query heads that share it.
template <class T, class E>
void backward(KernelContext& ctx, const Attention<T, E>& a, T* grad_query, T* grad_key, T* grad_value,
              AttentionOperand<const E> grad_out, AttentionOperand<const E> out, const T* log_sum) {
    const int64_t step = source_step(a), height = min(a.targets, kTargets), group = a.heads / a.key_heads;
    const int64_t widest = max(a.depth, a.width);
    const int64_t product = max(product_scratch<T, E>(height, step, widest, false, true),
                                max(product_scratch<T, E>(step, widest, height, true, false),
                                    product_scratch<T, E>(height, widest, step, false, false)));
    const int64_t rounded = operand_scratch<T, E>(height * step);
    const int64_t scores = (height * step + 15) / 16 * 16, sums = (a.targets + 15) / 16 * 16;
    run_tasks<T>(
        ctx, a.batch * a.key_heads, group * a.targets * a.sources * (3 * a.depth + 2 * a.width),
        product + rounded + 2 * scores + sums, [&](int64_t task, T* memory) {
            const int64_t b = task / a.key_heads, key_head = task % a.key_heads;
            T* weights = memory + product + rounded;
            T* grads = weights + scores;
            T* outer = grads + scores;
            T* dk = grad_key + task * a.sources * a.depth;
            T* dv = grad_value + task * a.sources * a.width;
            __builtin_memset(dk, 0, sizeof(T) * static_cast<size_t>(a.sources * a.depth));
            __builtin_memset(dv, 0, sizeof(T) * static_cast<size_t>(a.sources * a.width));
            for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
                const E* dy = grad_out.at(b, h);
                const E* y = out.at(b, h);
                const T* sum = log_sum + (b * a.heads + h) * a.targets;
                T* dq = grad_query + (b * a.heads + h) * a.targets * a.depth;
                __builtin_memset(dq, 0, sizeof(T) * static_cast<size_t>(a.targets * a.depth));
                for (int64_t r = 0; r < a.targets; ++r)
                    outer[r] = dot_of_rows<T>(dy + r * grad_out.row, y + r * out.row, a.width);
                for (int64_t j = 0; j < a.sources; j += step) {
                    for (int64_t i = a.causal ? j / height * height : 0; i < a.targets; i += height) {
                        const int64_t rows = min(height, a.targets - i);
                        const int64_t end = a.causal ? min(a.sources, i + rows) : a.sources;
                        if (end <= j) continue;
                        const Block<T, E> block{a, b, h, i, j, rows, min(step, end - j), weights, memory};
                        const int64_t n = block.columns;
                        const Matrix<E> dyi{dy + i * grad_out.row, grad_out.row, 1};
                        block.compute_scores();
                        // grad_out value^T
                        multiply(rows, n, a.width, dyi, block.value().transposed(), grads, T(1), false,
                                 memory);
                        for (int64_t r = 0; r < block.rows; ++r) {
                            T* p = weights + r * n;
                            T* s = grads + r * n;
                            const T log_total = sum[i + r], d = outer[i + r];
                            const int64_t seen = log_total == lowest<T>() ? 0 : block.visible(r);
                            if (a.kept == nullptr) {
                                for_each_vector<T>(seen, [&](int64_t c, auto lanes, int) {
                                    const Vec<T> w = exp<T>(load(p + c, lanes) - log_total);
                                    store(p + c, w, lanes);
                                    store(s + c, w * (load(s + c, lanes) - d) * a.scale, lanes);
                                });
                            } else {
                                T kept[kSources];
                                block.factors(r, seen, kept);
                                for_each_vector<T>(seen, [&](int64_t c, auto lanes, int) {
                                    const Vec<T> w = exp<T>(load(p + c, lanes) - log_total);
                                    const Vec<T> m = load(kept + c, lanes);
                                    store(p + c, w * m, lanes);
                                    store(s + c, w * (load(s + c, lanes) * m - d) * a.scale, lanes);
                                });
                            }
                            __builtin_memset(p + seen, 0, sizeof(T) * static_cast<size_t>(n - seen));
                            __builtin_memset(s + seen, 0, sizeof(T) * static_cast<size_t>(n - seen));
                        }
                        const Matrix<E> p{as_operand<E>(weights, rows * n, memory + product), n, 1};
                        multiply(n, a.width, rows, p.transposed(), dyi, dv + j * a.width, T(1), true, memory);
                        const Matrix<E> ds{as_operand<E>(grads, rows * n, memory + product), n, 1};
                        multiply(n, a.depth, rows, ds.transposed(), block.query(), dk + j * a.depth, T(1),
                                 true, memory);
                        multiply(rows, a.depth, n, ds, block.key(), dq + i * a.depth, T(1), true, memory);
                    }
                }
            }
        });
}

template <class T, class E = T>
constexpr AttentionLoops<T, E> table() {
    return {forward<T, E>, backward<T, E>};
}

}  // namespace

const AttentionKernels attention_kernels_table = {table<float>(), table<double>(), table<float, BFloat16>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
