// The loops behind recurrent.h, on row-major arrays of (batch, hidden), gates of (batch, count x hidden).
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

struct RecurrentKernels {
    RecurrentLoops<float> f32;
    RecurrentLoops<double> f64;
};

RUSHLIGHT_KERNEL_TABLE(RecurrentKernels, recurrent_kernels)

}  // namespace rushlight::cpu
