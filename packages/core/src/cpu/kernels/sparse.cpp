#include "cpu/kernels/rows.h"
#include "cpu/sparse_kernels.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

constexpr int64_t kWorkPerThread = 1 << 15;

// Each thread processes a range of rows, so that no two threads write to the same row. Each row is summed in the
// order of its values.
template <class T>
void rows(T* out, const int64_t* starts, const int64_t* order, const int64_t* col, const T* values,
          const T* dense, int64_t pitch, int64_t width, int64_t count) {
    const int64_t each = count == 0 ? 0 : starts[count] / count;
    parallel_for(0, count, kWorkPerThread / ((each + 1) * width + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
            T* to = out + r * width;
            const int64_t begin = starts[r], end = starts[r + 1];
            if (width == 1) {
                T sum = 0;
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t k = order ? order[i] : i;
                    sum += values[k] * dense[col[k] * pitch];
                }
                *to = sum;
                continue;
            }
            map_row(to, width, [&](int64_t, auto) { return Vec<T>{}; });
            for (int64_t i = begin; i < end; ++i) {
                const int64_t k = order ? order[i] : i;
                if (i + 8 < end) __builtin_prefetch(dense + col[order ? order[i + 8] : i + 8] * pitch);
                const T* from = dense + col[k] * pitch;
                const T factor = values[k];
                map_row(to, width, [&](int64_t j, auto lanes) {
                    return load(to + j, lanes) + load(from + j, lanes) * factor;
                });
            }
        }
    });
}

template <class T>
void products(T* out, const int64_t* row, const int64_t* col, const T* a, const T* b, int64_t width,
              int64_t count) {
    parallel_for(0, count, kWorkPerThread / (width + 1) + 1, [&](int64_t first, int64_t last) {
        for (int64_t k = first; k < last; ++k) {
            const T *x = a + row[k] * width, *y = b + col[k] * width;
            row_sums<T, 1>(width, out + k, [&](int64_t i, auto lanes, Vec<T>* v) {
                v[0] = load(x + i, lanes) * load(y + i, lanes);
            });
        }
    });
}

}  // namespace

const SparseKernels sparse_kernels_table = {rows<float>, rows<double>, products<float>, products<double>};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
