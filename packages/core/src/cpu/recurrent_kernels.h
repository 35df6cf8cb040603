// Kernels of the operators in recurrent.h, on row-major arrays. States have the shape (batch, hidden), and gates
// (batch, count x hidden).
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

template <class T>
struct RecurrentLoops {
    void (*lstm)(int64_t batch, int64_t hidden, T* h, T* c, const T* gates, const T* cell);
    void (*lstm_backward)(int64_t batch, int64_t hidden, T* grad_gates, T* grad_old_cell, const T* grad_h,
                          const T* grad_c, const T* gates, const T* cell, const T* next_cell);
    void (*gru)(int64_t batch, int64_t hidden, T* out, const T* from_input, const T* from_hidden,
                const T* state);
    void (*gru_backward)(int64_t batch, int64_t hidden, T* grad_input, T* grad_hidden, T* grad_old,
                         const T* grad, const T* from_input, const T* from_hidden, const T* state);
};

/// A layer of an LSTM in one direction. Sequences have the shape (steps, batch, ...), states have the shape (batch,
/// hidden), and the weight has the shape (4 * hidden, hidden).
template <class T>
struct LstmLayer {
    int64_t steps, batch, hidden;
    bool backwards;  // whether the last step is processed first
    const T *first_hidden, *first_cell, *weight;
    T *output, *cells, *sums;  // only read by `backward`
};

template <class T>
struct LstmLayerGradients {
    const T *output, *cells, *sums;
    T *gates, *first_hidden, *first_cell, *weight;
};

template <class T>
struct LstmLayerLoops {
    void (*forward)(KernelContext&, const LstmLayer<T>&, const T* gates);
    void (*backward)(KernelContext&, const LstmLayer<T>&, const LstmLayerGradients<T>&);
};

struct LstmLayerKernels {
    LstmLayerLoops<float> f32;
    LstmLayerLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(LstmLayerKernels, lstm_layer_kernels)

struct RecurrentKernels {
    RecurrentLoops<float> f32;
    RecurrentLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(RecurrentKernels, recurrent_kernels)

}  // namespace rushlight::cpu
