#include "cpu/recurrent_kernels.h"

#include "cpu/vector_math.h"
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
            const T now = math::sigmoid(f[k]) * old[k] + math::sigmoid(i[k]) * math::tanh(g[k]);
            next[k] = now;
            to[k] = math::sigmoid(o[k]) * math::tanh(now);
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
            const T si = math::sigmoid(i[k]), sf = math::sigmoid(f[k]), tg = math::tanh(g[k]),
                    so = math::sigmoid(o[k]), tc = math::tanh(next_cell[at + k]), gh = grad_h[at + k];
            const T gc = grad_c[at + k] + gh * so * (1 - tc * tc);
            d_o[k] = gh * tc * so * (1 - so);
            di[k] = gc * tg * si * (1 - si);
            df[k] = gc * cell[at + k] * sf * (1 - sf);
            dg[k] = gc * si * (1 - tg * tg);
            grad_old_cell[at + k] = gc * sf;
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
            const T r = math::sigmoid(x[k] + h[k]), z = math::sigmoid(x[hidden + k] + h[hidden + k]),
                    m = math::tanh(x[2 * hidden + k] + r * h[2 * hidden + k]);
            out[at + k] = (1 - z) * m + z * state[at + k];
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
            const T r = math::sigmoid(x[k] + h[k]), z = math::sigmoid(x[hidden + k] + h[hidden + k]),
                    hn = h[2 * hidden + k], m = math::tanh(x[2 * hidden + k] + r * hn), g = grad[at + k];
            const T dm = g * (1 - z) * (1 - m * m), dr = dm * hn * r * (1 - r),
                    dz = g * (state[at + k] - m) * z * (1 - z);
            dx[k] = dh[k] = dr;
            dx[hidden + k] = dh[hidden + k] = dz;
            dx[2 * hidden + k] = dm;
            dh[2 * hidden + k] = dm * r;
            grad_old[at + k] = g * z;
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
