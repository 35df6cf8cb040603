// Sums and transforms of the columns of a matrix (rows, channels), as channels-last tensors are stored: vectors run
// along the channels.
#pragma once

#include "cpu/contiguous.h"
#include "cpu/kernels/rows.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

/// A matrix (rows, channels). If the rows are short, several successive rows are joined to one wide row that fills
/// whole vectors, and the parameters of the channels are repeated for each of the joined rows. The last wide row may be
/// incomplete.
template <class T>
struct ChannelRows {
    int64_t channels, width;  // width is a multiple of channels
    int64_t whole, rest;  // number of complete wide rows, and of elements after them

    ChannelRows(int64_t rows, int64_t channels) : channels(channels), width(channels) {
        constexpr int64_t kL = kLanes<T>;
        if (channels < 8 * kL) {
            while (width % kL != 0) width += width;  // kL is a power of two
            while (width < 4 * kL) width += width;
        }
        whole = rows * channels / width;
        rest = rows * channels % width;
    }

    /// The number of elements of a buffer for one parameter: one element for each column of a wide row, rounded up to
    /// whole vectors.
    int64_t padded() const { return (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }

    /// Fills the rest of a buffer with copies of its first `channels` elements, so that it has one element for each
    /// column of a wide row.
    void repeat(T* values) const {
        for (int64_t i = channels; i < width; ++i) values[i] = values[i - channels];
    }

    /// Whether the matrix fits into the caches. If the matrix does not fit, and several arrays are read, then reading
    /// one row at a time is faster than reading several rows at once.
    bool is_cached() const { return whole * width <= 1 << 20; }

    /// The number of wide rows; an incomplete last row is counted.
    int64_t count() const { return whole + (rest > 0); }
};

/// Sums over the rows of a matrix. The rows are divided into the same blocks for any number of threads, so the sums do
/// not depend on the number of threads. Within a block, the sums of kSpan rows each are computed in single precision,
/// and these sums are added in double precision.
template <class T, int kSums>
class ChannelSums {
  public:
    /// `arrays` is the number of arrays of the matrix's size that the terms read.
    ChannelSums(KernelContext& ctx, const ChannelRows<T>& rows, int arrays)
        : m_(rows), together_(arrays == 1 || rows.is_cached() ? 8 : 1) {
        constexpr int64_t most = 64;
        const int64_t spans = (m_.count() + kSpan - 1) / kSpan;
        blocks_ = spans < most ? spans : most;
        sums_ = scratch<T>(ctx, blocks_ * kSums * m_.padded());
        parts_ = scratch<double>(ctx, blocks_ * kSums * m_.channels);
    }

    /// Computes `kSums` sums for each channel. term(position, column, lanes, v) writes one vector of terms for each sum
    /// to v, with zeros in the lanes that are not in use. Element k * channels + c of the result is sum k of channel c.
    /// The result is valid until the next call.
    template <class Term>
    const double* operator()(Term&& term) {
        const int64_t count = m_.count(), size = kSums * m_.channels;
        parallel_for(0, blocks_, kElements / (count / blocks_ * m_.width + 1) + 1,
                     [&](int64_t from, int64_t to) {
                         for (int64_t b = from; b < to; ++b) {
                             double* part = parts_ + b * size;
                             for (int64_t i = 0; i < size; ++i) part[i] = 0;
                             const int64_t end = count * (b + 1) / blocks_;
                             for (int64_t start = count * b / blocks_; start < end; start += kSpan)
                                 add_span(sums_ + b * kSums * m_.padded(), part, start,
                                          start + kSpan < end ? start + kSpan : end, term);
                         }
                     });
        for (int64_t b = 1; b < blocks_; ++b)
            for (int64_t i = 0; i < size; ++i) parts_[i] += parts_[b * size + i];
        return parts_;
    }

  private:
    // Rows that are added in single precision, and the minimum number of elements for a thread.
    static constexpr int64_t kSpan = 128, kElements = 1 << 15;

    template <class Term>
    void add_span(T* sums, double* part, int64_t start, int64_t stop, Term& term) const {
        constexpr int kL = kLanes<T>;
        const int64_t padded = m_.padded(), channels = m_.channels;
        for (int64_t i = 0; i < kSums * padded; ++i) sums[i] = T(0);
        const auto add = [&](int64_t row, int64_t rows, int64_t i, auto lanes)
                             __attribute__((always_inline)) {
                                 Vec<T> s[kSums], v[kSums];
#pragma GCC unroll 4
                                 for (int k = 0; k < kSums; ++k) s[k] = load(sums + k * padded + i);
                                 for (int64_t j = 0; j < rows; ++j) {
                                     term((row + j) * m_.width + i, i, lanes, v);
#pragma GCC unroll 4
                                     for (int k = 0; k < kSums; ++k) s[k] += v[k];
                                 }
#pragma GCC unroll 4
                                 for (int k = 0; k < kSums; ++k) store(sums + k * padded + i, s[k]);
                             };
        for (int64_t row = start, rows; row < stop; row += rows) {
            const int64_t left =
                (stop < m_.whole ? stop : m_.whole) - row;  // not positive if `row` is the incomplete row
            rows = left > together_ ? together_ : left > 0 ? left : 1;
            const int64_t n = left > 0 ? m_.width : m_.rest;
            int64_t i = 0;
            for (; i + kL <= n; i += kL) add(row, rows, i, WholeVector<T>{});
            if (i < n) add(row, rows, i, Lanes<T>(n - i));
        }
        for (int k = 0; k < kSums; ++k)
            for (int64_t first = 0; first < m_.width; first += channels)
                for (int64_t c = 0; c < channels; ++c) part[k * channels + c] += sums[k * padded + first + c];
    }

    ChannelRows<T> m_;
    int64_t together_;  // rows whose terms are added before the sums of a vector are stored
    int64_t blocks_;
    T* sums_;
    double* parts_;
};

/// Writes out[i] = f(position, column, lanes) for all elements of the matrix, with streaming stores if `stream` is
/// true. The rows are processed in pieces, the last piece first: if sums over the matrix have just been computed, its
/// end is still in the caches.
template <class T, class F>
void map_channels(const ChannelRows<T>& m, T* out, bool stream, F&& f) {
    constexpr int kTogether = 4;  // rows that share one load of each parameter's vector
    const bool together = !stream && m.is_cached();
    const int64_t piece = (1 << 17) / m.width + kTogether;
    parallel_for(0, m.count(), (1 << 15) / m.width + 1, [&](int64_t first, int64_t last) {
        for (int64_t end = last; end > first; end -= piece) {
            int64_t r = end - piece > first ? end - piece : first;
            for (; together && r + kTogether <= (end < m.whole ? end : m.whole); r += kTogether) {
                for_each_vector<T>(m.width, [&](int64_t i, auto lanes, int) __attribute__((always_inline)) {
                    Vec<T> made[kTogether];
#pragma GCC unroll 4
                    for (int j = 0; j < kTogether; ++j) made[j] = f((r + j) * m.width + i, i, lanes);
#pragma GCC unroll 4
                    for (int j = 0; j < kTogether; ++j) store(out + (r + j) * m.width + i, made[j], lanes);
                });
            }
            for (; r < end; ++r) {
                const int64_t at = r * m.width;
                map_row(out + at, r < m.whole ? m.width : m.rest, stream,
                        [&](int64_t i, auto lanes)
                            __attribute__((always_inline)) { return f(at + i, i, lanes); });
            }
        }
        if (stream) _mm_sfence();
    });
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
