#include "cpu/recurrent_kernels.h"

#include "ops/functors/gates.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kElementsPerThread = 1 << 11;

// Runs body(row) for all rows.
template <class Body>
void for_rows(int64_t batch, int64_t hidden, Body&& body) {
    parallel_for(0, batch, kElementsPerThread / (hidden + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t n = first; n < last; ++n) body(n);
    });
}

template <class T>
void lstm(int64_t batch, int64_t hidden, T* h, T* c, const T* gates, const T* cell) {
    for_rows(batch, hidden, [&](int64_t n) {
        const T *i = gates + n * 4 * hidden, *f = i + hidden, *g = f + hidden, *o = g + hidden,
                *old = cell + n * hidden;
        T *to = h + n * hidden, *next = c + n * hidden;
#pragma omp simd
        for (int64_t k = 0; k < hidden; ++k) {
            const auto made = functors::lstm_step(i[k], f[k], g[k], o[k], old[k]);
            next[k] = made.cell;
            to[k] = made.hidden;
        }
    });
}

template <class T>
void lstm_backward(int64_t batch, int64_t hidden, T* grad_gates, T* grad_old_cell, const T* grad_h,
                   const T* grad_c, const T* gates, const T* cell, const T* next_cell) {
    for_rows(batch, hidden, [&](int64_t n) {
        const int64_t at = n * hidden;
        const T *i = gates + 4 * at, *f = i + hidden, *g = f + hidden, *o = g + hidden;
        T *di = grad_gates + 4 * at, *df = di + hidden, *dg = df + hidden, *d_o = dg + hidden;
#pragma omp simd
        for (int64_t k = 0; k < hidden; ++k) {
            const auto made = functors::lstm_gradients(i[k], f[k], g[k], o[k], cell[at + k],
                                                       next_cell[at + k], grad_h[at + k], grad_c[at + k]);
            di[k] = made.in;
            df[k] = made.forget;
            dg[k] = made.candidate;
            d_o[k] = made.out;
            grad_old_cell[at + k] = made.cell;
        }
    });
}

template <class T>
void gru(int64_t batch, int64_t hidden, T* out, const T* from_input, const T* from_hidden, const T* state) {
    for_rows(batch, hidden, [&](int64_t n) {
        const int64_t at = n * hidden;
        const T *x = from_input + 3 * at, *h = from_hidden + 3 * at;
#pragma omp simd
        for (int64_t k = 0; k < hidden; ++k) {
            out[at + k] = functors::gru_step(x[k], x[hidden + k], x[2 * hidden + k], h[k], h[hidden + k],
                                             h[2 * hidden + k], state[at + k]);
        }
    });
}

template <class T>
void gru_backward(int64_t batch, int64_t hidden, T* grad_input, T* grad_hidden, T* grad_old, const T* grad,
                  const T* from_input, const T* from_hidden, const T* state) {
    for_rows(batch, hidden, [&](int64_t n) {
        const int64_t at = n * hidden;
        const T *x = from_input + 3 * at, *h = from_hidden + 3 * at;
        T *dx = grad_input + 3 * at, *dh = grad_hidden + 3 * at;
#pragma omp simd
        for (int64_t k = 0; k < hidden; ++k) {
            const auto made =
                functors::gru_gradients(x[k], x[hidden + k], x[2 * hidden + k], h[k], h[hidden + k],
                                        h[2 * hidden + k], state[at + k], grad[at + k]);
            dx[k] = dh[k] = made.reset;
            dx[hidden + k] = dh[hidden + k] = made.update;
            dx[2 * hidden + k] = made.x_new;
            dh[2 * hidden + k] = made.h_new;
            grad_old[at + k] = made.state;
        }
    });
}

template <class T>
constexpr RecurrentLoops<T> table() {
    return {lstm<T>, lstm_backward<T>, gru<T>, gru_backward<T>};
}

}  // namespace

const RecurrentKernels recurrent_kernels_table = {table<float>(), table<double>()};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
