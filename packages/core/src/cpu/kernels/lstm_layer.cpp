// A layer of an LSTM over a whole sequence. The input's contribution to the gates is given. Each step consists of a
// product with the states and a pass over the gates. The weight is packed once for all steps. The hidden units are
// divided among the threads: each thread multiplies the columns of its units and then computes their gates, so that
// the threads synchronize only once in a step.
#include "cpu/contiguous.h"
#include "cpu/gemm.h"
#include "cpu/recurrent_kernels.h"
#include "ops/functors/gates.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

template <class T> struct Products;
template <> struct Products<float> {
    static int64_t scratch(const Gemm<float>& g) { return gemm_kernels().scratch_f32(g); }
    static int64_t packed_size(const Gemm<float>& g) { return gemm_kernels().packed_size_f32(g); }
    static void pack(const Gemm<float>& g, float* to) { gemm_kernels().pack_f32(g, to); }
    static void multiply(const Gemm<float>& g, const float* packed, float* scratch) {
        gemm_kernels().serial_packed_f32(g, packed, scratch);
    }
    static void all_threads(KernelContext& ctx, const Gemm<float>& g) { gemm_kernels().gemm_f32(ctx, g); }
};
template <> struct Products<double> {
    static int64_t scratch(const Gemm<double>& g) { return gemm_kernels().scratch_f64(g); }
    static int64_t packed_size(const Gemm<double>& g) { return gemm_kernels().packed_size_f64(g); }
    static void pack(const Gemm<double>& g, double* to) { gemm_kernels().pack_f64(g, to); }
    static void multiply(const Gemm<double>& g, const double* packed, double* scratch) {
        gemm_kernels().serial_packed_f64(g, packed, scratch);
    }
    static void all_threads(KernelContext& ctx, const Gemm<double>& g) { gemm_kernels().gemm_f64(ctx, g); }
};

// Number of multiply-adds of a step below which a second thread costs more time than it saves, and size of the
// groups of hidden units that are divided among the threads.
constexpr int64_t kWorkPerThread = 1 << 18, kUnits = 16;

// The matrix product of every step. Its right operand is the weight, which has `parts` blocks of columns, each with
// one column for each hidden unit.
template <class T>
class StepProduct {
  public:
    StepProduct(KernelContext& ctx, int64_t hidden, const Gemm<T>& whole, int64_t parts)
        : whole_(whole), parts_(parts), width_(hidden) {
        const int64_t groups = (hidden + kUnits - 1) / kUnits;
        workers_ = max(1, min(min(num_threads(), groups), whole.m * whole.n * whole.k / kWorkPerThread));
        if (workers_ == 1) width_ = whole.n, parts_ = 1;
        Gemm<T> widest = whole;
        widest.n = workers_ == 1 ? whole.n : (groups + workers_ - 1) / workers_ * kUnits;
        scratch_size_ = (Products<T>::scratch(widest) + 15) / 16 * 16;
        packed_size_ = (Products<T>::packed_size(widest) + 15) / 16 * 16;
        memory_ = scratch<T>(ctx, workers_ * (scratch_size_ + parts_ * packed_size_));
        parallel_for(0, workers_, 1, [&](int64_t first, int64_t last) {
            for (int64_t w = first; w < last; ++w) {
                for (int64_t p = 0; p < parts_; ++p) Products<T>::pack(part(w, p), packed(w, p));
            }
        });
    }

    int64_t workers() const { return workers_; }

    // Returns the first column or hidden unit of a worker, if `units` of them are divided among the workers.
    int64_t begin(int64_t worker, int64_t units) const {
        const int64_t groups = (units + kUnits - 1) / kUnits;
        return min(units, groups * worker / workers_ * kUnits);
    }

    // Computes the part of the product for the hidden units of one worker.
    void multiply(int64_t worker, const T* a, T* c, const T* init) const {
        for (int64_t p = 0; p < parts_; ++p) {
            const int64_t j = first_column(worker, p);
            Gemm<T> g = part(worker, p);
            g.a = a;
            g.c = c + j;
            g.init = init == nullptr ? nullptr : init + j;
            Products<T>::multiply(g, packed(worker, p), scratch_of(worker));
        }
    }

  private:
    int64_t first_column(int64_t worker, int64_t p) const { return p * width_ + begin(worker, width_); }
    // Returns the product for one worker's columns in block `p` of the columns.
    Gemm<T> part(int64_t worker, int64_t p) const {
        Gemm<T> g = whole_;
        g.n = begin(worker + 1, width_) - begin(worker, width_);
        g.b += first_column(worker, p) * g.b_col;
        return g;
    }
    T* scratch_of(int64_t worker) const { return memory_ + worker * (scratch_size_ + parts_ * packed_size_); }
    T* packed(int64_t worker, int64_t p) const {
        return scratch_of(worker) + scratch_size_ + p * packed_size_;
    }

    Gemm<T> whole_;
    int64_t parts_, width_, workers_, scratch_size_, packed_size_;
    T* memory_;
};

// Returns the element of the sequence that the k-th step of the computation processes.
template <class T>
int64_t at(const LstmLayer<T>& l, int64_t k) {
    return l.backwards ? l.steps - 1 - k : k;
}

template <class T>
const T* hidden_before(const LstmLayer<T>& l, int64_t k) {
    return k == 0 ? l.first_hidden : l.output + at(l, k - 1) * l.batch * l.hidden;
}
template <class T>
const T* cell_before(const LstmLayer<T>& l, int64_t k) {
    return k == 0 ? l.first_cell : l.cells + at(l, k - 1) * l.batch * l.hidden;
}

template <class T>
void forward(KernelContext& ctx, const LstmLayer<T>& l, const T* gates) {
    const int64_t h = l.hidden, state = l.batch * h;
    const StepProduct<T> product(ctx, h,
                                 Gemm<T>{l.batch, 4 * h, h, nullptr, h, 1, l.weight, 1, h, nullptr, 4 * h,
                                         T(1), T(1), nullptr, 4 * h, 1},
                                 4);
    for (int64_t k = 0; k < l.steps; ++k) {
        const int64_t t = at(l, k);
        T* const sums = l.sums + t * 4 * state;
        const T *before = hidden_before(l, k), *cell = cell_before(l, k);
        parallel_for(0, product.workers(), 1, [&](int64_t first, int64_t last) {
            for (int64_t w = first; w < last; ++w) {
                product.multiply(w, before, sums, gates + t * 4 * state);
                const int64_t begin = product.begin(w, h), end = product.begin(w + 1, h);
                for (int64_t n = 0; n < l.batch; ++n) {
                    const T *i = sums + n * 4 * h, *f = i + h, *g = f + h, *o = g + h, *old = cell + n * h;
                    T *to = l.output + t * state + n * h, *next = l.cells + t * state + n * h;
#pragma omp simd
                    for (int64_t u = begin; u < end; ++u) {
                        const auto made = functors::lstm_step(i[u], f[u], g[u], o[u], old[u]);
                        next[u] = made.cell;
                        to[u] = made.hidden;
                    }
                }
            }
        });
    }
}

// Computes the gradient of the weight: the sum over all steps of the gradient of `sums` times the state before the
// step.
template <class T>
void weight_gradient(KernelContext& ctx, const LstmLayer<T>& l, const LstmLayerGradients<T>& grad) {
    const int64_t h = l.hidden, state = l.batch * h, later = l.backwards ? 0 : 1;
    const auto add = [&](const T* gates, const T* states, int64_t steps, bool first) {
        Gemm<T> g{4 * h, h,    steps * l.batch, gates, 1, 4 * h, states, h, 1, grad.weight, h,
                  T(1),  T(1), grad.weight,     h,     1};
        if (first) g.init = nullptr;
        Products<T>::all_threads(ctx, g);
    };
    add(grad.gates + at(l, 0) * 4 * state, l.first_hidden, 1, true);
    if (l.steps > 1) add(grad.gates + later * 4 * state, l.output + (1 - later) * state, l.steps - 1, false);
}

template <class T>
void backward(KernelContext& ctx, const LstmLayer<T>& l, const LstmLayerGradients<T>& grad) {
    const int64_t h = l.hidden, state = l.batch * h;
    // The buffers of the initial states' gradients accumulate the states' gradients across steps.
    T *const to_hidden = grad.first_hidden, *const to_cell = grad.first_cell;
    const StepProduct<T> product(
        ctx, h,
        Gemm<T>{l.batch, h, 4 * h, nullptr, 4 * h, 1, l.weight, h, 1, nullptr, h, T(1), T(0), nullptr, 0, 0},
        1);
    for (int64_t k = l.steps - 1; k >= -1; --k) {
        parallel_for(0, product.workers(), 1, [&](int64_t first, int64_t last) {
            for (int64_t w = first; w < last; ++w) {
                if (k + 1 < l.steps)
                    product.multiply(w, grad.gates + at(l, k + 1) * 4 * state, to_hidden, nullptr);
                if (k < 0) continue;
                const int64_t t = at(l, k), begin = product.begin(w, h), end = product.begin(w + 1, h);
                const T* const before = cell_before(l, k);
                const bool last_step = k + 1 == l.steps;
                for (int64_t n = 0; n < l.batch; ++n) {
                    const int64_t row = t * state + n * h;
                    const T *i = l.sums + 4 * row, *f = i + h, *g = f + h, *o = g + h, *old = before + n * h;
                    const T *di = grad.sums + 4 * row, *df = di + h, *dg = df + h, *d_o = dg + h;
                    const T *dh = grad.output + row, *dc = grad.cells + row, *next = l.cells + row;
                    T *gi = grad.gates + 4 * row, *gf = gi + h, *gg = gf + h, *go = gg + h;
                    T *hidden = to_hidden + n * h, *cell = to_cell + n * h;
                    if (last_step) {
                        for (int64_t u = begin; u < end; ++u) hidden[u] = cell[u] = T(0);
                    }
#pragma omp simd
                    for (int64_t u = begin; u < end; ++u) {
                        const auto made = functors::lstm_gradients(i[u], f[u], g[u], o[u], old[u], next[u],
                                                                   dh[u] + hidden[u], dc[u] + cell[u]);
                        gi[u] = made.in + di[u];
                        gf[u] = made.forget + df[u];
                        gg[u] = made.candidate + dg[u];
                        go[u] = made.out + d_o[u];
                        cell[u] = made.cell;
                    }
                }
            }
        });
    }
    weight_gradient(ctx, l, grad);
}

template <class T>
constexpr LstmLayerLoops<T> table() {
    return {forward<T>, backward<T>};
}

}  // namespace

const LstmLayerKernels lstm_layer_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
