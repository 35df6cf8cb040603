// Convolutions in one to three dimensions and their gradients. cuDNN computes them if it has a kernel for the form and the
// user permits it. Otherwise they are matrix products: the windows of the input are written as columns of a matrix in
// scratch memory, which is multiplied by the weight. For integers, and if each group has one input channel, elements are
// summed directly. Except in cuDNN, the order of all sums is fixed.
#include <algorithm>

#include "cuda/blas.h"
#include "cuda/convolution_plans.h"
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "cuda/kernels/formats.cuh"

namespace rushlight::cuda {
namespace {

/// A cross-correlation from `in` to `out`, both row-major or both channels-last. With fewer than three spatial dimensions, the first entries
/// of the arrays describe dimensions of size 1. A transposed convolution is the gradient of a cross-correlation, and is
/// described by this cross-correlation with `in` and `out` exchanged.
struct Correlation {
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    bool channels_last = false;

    Correlation(const View& from, const View& weight, const View& to, const KernelArgs& args)
        : batch(from.size(0)),
          in_channels(from.size(1)),
          out_channels(to.size(1)),
          groups(args.params[5].as_int()) {
        const int dims = from.ndim - 2;
        if (dims < 1 || dims > 3)
            fail(BackendStatus::Value, "input has %d dimensions, needs 3 to 5", static_cast<int>(from.ndim));
        const auto entry = [](const Ints& list, int d) { return list[list.size == 1 ? 0 : d]; };
        for (int d = 0; d < 3; ++d) {
            const int i = d - (3 - dims);  // index of the actual spatial dimension
            in[d] = i < 0 ? 1 : from.size(2 + i);
            out[d] = i < 0 ? 1 : to.size(2 + i);
            kernel[d] = i < 0 ? 1 : weight.size(2 + i);
            stride[d] = i < 0 ? 1 : entry(args.params[0].as_ints(), i);
            padding[d] = i < 0 ? 0 : entry(args.params[1].as_ints(), i);
            dilation[d] = i < 0 ? 1 : entry(args.params[2].as_ints(), i);
        }
    }

    __host__ __device__ int64_t in_size() const { return in[0] * in[1] * in[2]; }
    __host__ __device__ int64_t out_size() const { return out[0] * out[1] * out[2]; }
    __host__ __device__ int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    /// The number of input channels, or of output channels, of each group.
    __host__ __device__ int64_t group_in() const { return in_channels / groups; }
    __host__ __device__ int64_t group_out() const { return out_channels / groups; }
    /// Number of input elements that contribute to an output element.
    int64_t window() const { return group_in() * taps(); }
    /// Whether each output position reads only the input at the same position.
    bool is_pointwise() const {
        bool same = true;
        for (int d = 0; d < 3; ++d) same = same && kernel[d] == 1 && stride[d] == 1 && padding[d] == 0;
        return same;
    }

    /// Whether the sizes of the output follow from those of the input. A transposed convolution with a large
    /// output_padding has an input, its result, for which more windows fit.
    bool is_complete() const {
        bool complete = true;
        for (int d = 0; d < 3; ++d) {
            const int64_t room = in[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            complete = complete && room >= 0 && room / stride[d] + 1 == out[d];
        }
        return complete;
    }

    /// The place of an element in memory, in an array with planes of `size` elements.
    __device__ int64_t place(int64_t sample, int64_t channel, int64_t position, int64_t channels,
                             int64_t size) const {
        return channels_last ? (sample * size + position) * channels + channel
                             : (sample * channels + channel) * size + position;
    }
    __device__ int64_t place_in(int64_t sample, int64_t channel, int64_t position) const {
        return place(sample, channel, position, in_channels, in_size());
    }
    __device__ int64_t place_out(int64_t sample, int64_t channel, int64_t position) const {
        return place(sample, channel, position, out_channels, out_size());
    }
    struct Element {
        int64_t sample, channel, position;
    };
    /// The element at a place in memory.
    __device__ Element element(int64_t at, int64_t channels, int64_t size) const {
        if (channels_last) return {at / channels / size, at % channels, at / channels % size};
        return {at / size / channels, at / size % channels, at % size};
    }

    /// Returns the input position that a tap reads for an output position, or -1 if the tap reads the padding.
    __device__ int64_t source(int64_t position, int64_t tap) const {
        int64_t found = 0, step = 1;
        for (int d = 2; d >= 0; --d) {
            const int64_t at = position % out[d] * stride[d] - padding[d] + tap % kernel[d] * dilation[d];
            position /= out[d];
            tap /= kernel[d];
            if (at < 0 || at >= in[d]) return -1;
            found += at * step;
            step *= in[d];
        }
        return found;
    }
    /// Returns the output position for which a tap reads an input position, or -1 if there is none.
    __device__ int64_t target(int64_t position, int64_t tap) const {
        int64_t found = 0, step = 1;
        for (int d = 2; d >= 0; --d) {
            const int64_t from = position % in[d] + padding[d] - tap % kernel[d] * dilation[d];
            position /= in[d];
            tap /= kernel[d];
            if (from < 0 || from % stride[d] != 0 || from / stride[d] >= out[d]) return -1;
            found += from / stride[d] * step;
            step *= out[d];
        }
        return found;
    }
};

// --- Columns -----------------------------------------------------------------------------------------------------

/// Writes the windows of some samples as the columns of a matrix, which has a row for each (channel, tap) and a column
/// for each output position.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gather_columns(const Correlation c, T* columns, const T* in, int64_t samples, int64_t sample_step,
                   int64_t row_step) {
    const int64_t rows = c.in_channels * c.taps(), positions = c.out_size(), n = samples * rows * positions;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const int64_t position = i % positions, row = i / positions % rows, sample = i / positions / rows;
        const int64_t from = c.source(position, row % c.taps());
        columns[sample * sample_step + row * row_step + position] =
            from < 0 ? T() : in[(sample * c.in_channels + row / c.taps()) * c.in_size() + from];
    }
}

/// Computes for each input position the sum of the matrix elements that belong to it. If `add` is true, adds the sums
/// to `in`.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    sum_columns(const Correlation c, Stored* in, const Stored* columns, int64_t samples, bool add) {
    using T = Computed<Stored>;
    const int64_t size = c.in_size(), taps = c.taps(), positions = c.out_size(),
                  n = samples * c.in_channels * size;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        T sum = add ? static_cast<T>(in[i]) : T(0);
        for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t position = c.target(i % size, tap);
            if (position >= 0) sum += static_cast<T>(columns[(i / size * taps + tap) * positions + position]);
        }
        in[i] = Stored(sum);
    }
}

// --- Direct sums ---------------------------------------------------------------------------------------------------

/// The accumulator type. For floating-point numbers it is the same type as in other kernels, and for integers it is a
/// type that wraps around.
template <class Stored, bool integer = std::is_integral_v<Stored>>
struct SumOf {
    using Type = Computed<Stored>;
};
template <class Stored>
struct SumOf<Stored, true> {
    using Type = uint64_t;
};

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    correlate(const Correlation c, Stored* out, const Stored* in, const Stored* weight, const Stored* bias) {
    using T = typename SumOf<Stored>::Type;
    const int64_t positions = c.out_size(), n = c.batch * c.out_channels * positions, taps = c.taps();
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const auto [sample, channel, position] = c.element(i, c.out_channels, positions);
        const int64_t first = channel / c.group_out() * c.group_in();
        T sum = bias ? static_cast<T>(bias[channel]) : T(0);
        for (int64_t k = 0; k < c.group_in(); ++k)
            for (int64_t tap = 0; tap < taps; ++tap) {
                const int64_t from = c.source(position, tap);
                if (from < 0) continue;
                sum += static_cast<T>(in[c.place_in(sample, first + k, from)]) *
                       static_cast<T>(weight[(channel * c.group_in() + k) * taps + tap]);
            }
        out[i] = Stored(sum);
    }
}

/// Computes the gradient of `correlate` with respect to its input, or a transposed convolution.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    correlate_transposed(const Correlation c, Stored* in, const Stored* out, const Stored* weight,
                         const Stored* bias) {
    using T = typename SumOf<Stored>::Type;
    const int64_t size = c.in_size(), n = c.batch * c.in_channels * size, taps = c.taps();
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const auto [sample, channel, position] = c.element(i, c.in_channels, size);
        const int64_t first = channel / c.group_in() * c.group_out();
        T sum = bias ? static_cast<T>(bias[channel]) : T(0);
        for (int64_t k = first; k < first + c.group_out(); ++k)
            for (int64_t tap = 0; tap < taps; ++tap) {
                const int64_t to = c.target(position, tap);
                if (to < 0) continue;
                sum += static_cast<T>(out[c.place_out(sample, k, to)]) *
                       static_cast<T>(weight[(k * c.group_in() + channel % c.group_in()) * taps + tap]);
            }
        in[i] = Stored(sum);
    }
}

/// Number of successive channels of a channels-last array that a block processes at a time.
constexpr unsigned kLanes = 32;

/// Computes the gradient of `correlate` with respect to its weight. One block computes one element or, for channels-last
/// arrays, one element of each of kLanes output channels, so that neighbouring threads read neighbouring elements.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    correlate_weights(const Correlation c, Stored* weight, const Stored* in, const Stored* out) {
    using T = Computed<Stored>;
    __shared__ Values<T> room;
    const unsigned width = c.channels_last ? kLanes : 1;
    const int64_t positions = c.out_size(), each = c.group_in() * c.taps(),
                  tiles = (c.out_channels + width - 1) / width;
    for (int64_t block = blockIdx.x; block < tiles * each; block += gridDim.x) {
        const int64_t channel = block / each * width + threadIdx.x % width, w = block % each,
                      tap = w % c.taps(), source = channel / c.group_out() * c.group_in() + w / c.taps();
        const int64_t end = channel < c.out_channels ? c.batch * positions : 0;
        T sum = 0;
        for (int64_t i = threadIdx.x / width; i < end; i += kThreads / width) {
            const int64_t sample = i / positions, from = c.source(i % positions, tap);
            if (from < 0) continue;
            sum += static_cast<T>(in[c.place_in(sample, source, from)]) *
                   static_cast<T>(out[c.place_out(sample, channel, i % positions)]);
        }
        __syncthreads();  // all threads have read `room`
        room.x[threadIdx.x] = sum;
        for (unsigned apart = kThreads / 2; apart >= width; apart /= 2) {
            __syncthreads();
            if (threadIdx.x < apart) room.x[threadIdx.x] += room.x[threadIdx.x + apart];
        }
        if (threadIdx.x < width && end > 0) weight[channel * each + w] = Stored(room.x[threadIdx.x]);
    }
}

/// Adds a number to each element of a channel. The channels are `apart` elements apart.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    add_to_channels(Stored* x, const Stored* bias, int64_t channels, int64_t apart, int64_t n) {
    using T = Computed<Stored>;
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        x[i] = Stored(static_cast<T>(x[i]) + static_cast<T>(bias[i / apart % channels]));
}

/// Computes the sum of each channel. One block computes each sum.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    sum_channels(Stored* sums, const Stored* x, int64_t batch, int64_t channels, int64_t size) {
    using T = Computed<Stored>;
    __shared__ Values<T> room;
    for (int64_t channel = blockIdx.x; channel < channels; channel += gridDim.x) {
        T sum = 0;
        for (int64_t i = threadIdx.x; i < batch * size; i += kThreads)
            sum += static_cast<T>(x[(i / size * channels + channel) * size + i % size]);
        sum = over_lanes(room.x, threadIdx.x, kThreads, sum, Plus());
        if (threadIdx.x == 0) sums[channel] = Stored(sum);
    }
}

/// Computes the sums of the columns of a matrix (rows, channels). A block adds `share` rows of kLanes columns, and writes
/// the sums to a row of `sums`, a matrix (parts, channels).
template <class To, class From>
__global__ void __launch_bounds__(kThreads)
    sum_rows(To* sums, const From* x, int64_t rows, int64_t channels, int64_t share) {
    using T = Computed<From>;
    __shared__ Values<T> room;
    const int64_t tiles = (channels + kLanes - 1) / kLanes, parts = (rows + share - 1) / share;
    for (int64_t block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
        const int64_t part = block / tiles, channel = block % tiles * kLanes + threadIdx.x % kLanes,
                      end = (part + 1) * share < rows ? (part + 1) * share : rows;
        T sum = 0;
        if (channel < channels)
            for (int64_t row = part * share + threadIdx.x / kLanes; row < end; row += kThreads / kLanes)
                sum += static_cast<T>(x[row * channels + channel]);
        __syncthreads();  // all threads have read `room`
        room.x[threadIdx.x] = sum;
        for (unsigned apart = kThreads / 2; apart >= kLanes; apart /= 2) {
            __syncthreads();
            if (threadIdx.x < apart) room.x[threadIdx.x] += room.x[threadIdx.x + apart];
        }
        if (threadIdx.x < kLanes && channel < channels)
            sums[part * channels + channel] = To(room.x[threadIdx.x]);
    }
}

// --- Queueing --------------------------------------------------------------------------------------------------------

Grid grid_of(int64_t elements) { return {blocks_for(elements), kThreads}; }
Grid grid_of_blocks(int64_t blocks) { return {blocks_for(blocks * kThreads), kThreads}; }

/// The maximum size in bytes of the matrix of columns. The columns of one sample may need more. Tests use a smaller
/// value.
#ifndef RUSHLIGHT_CUDA_COLUMN_BYTES
#define RUSHLIGHT_CUDA_COLUMN_BYTES (int64_t{256} << 20)
#endif
constexpr int64_t kColumnBytes = RUSHLIGHT_CUDA_COLUMN_BYTES;

constexpr View kAbsent{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};

/// One cross-correlation of a floating dtype. All its kernels are queued on one stream.
template <class Stored>
class Convolution {
  public:
    Convolution(const KernelArgs& args, const Correlation& correlation)
        : args_(args), c_(correlation), stream_(queue_of(args)), rows_(c_.in_channels * c_.taps()) {
        const int64_t bytes =
            std::max<int64_t>(rows_ * c_.out_size() * static_cast<int64_t>(sizeof(Stored)), 1);
        samples_ = std::clamp<int64_t>(kColumnBytes / bytes, 1, std::max<int64_t>(c_.batch, 1));
    }

    /// Computes `out`, the cross-correlation of `in` and `weight`, and adds `bias` if it is defined.
    void forward(const View& out, const View& in, const View& weight, const View& bias) {
        if (by_library(ConvolutionForm::Kind::Forward, in, weight, out, bias)) return;
        if (is_direct()) return directly(&correlate<Stored>, out, in, weight, bias);
        const Stored *x = dense<Stored>(args_.context, in), *w = dense<Stored>(args_.context, weight);
        const DenseOut<Stored> to(args_.context, out);
        start_with(to.data(), out, bias);
        if (c_.window() == 0) return to.finish();  // there is nothing to add
        for_samples([&](int64_t first, int64_t count) {
            const Stored* columns = columns_of(x + first * c_.in_channels * c_.in_size(), count);
            Product p = product(c_.group_out(), c_.out_size(), c_.window(), bias.defined() ? 1 : 0);
            p.a = {w, c_.group_out() * c_.window(), c_.window(), 1};
            p.b = {columns, c_.window() * c_.out_size(), c_.out_size(), 1};
            p.out = {to.data() + first * c_.out_channels * c_.out_size(), c_.group_out() * c_.out_size(),
                     c_.out_size(), 1};
            multiply_groups(p, count, 0, rows_ * c_.out_size(), c_.out_channels * c_.out_size());
        });
        to.finish();
    }

    /// Computes `in`, the gradient with respect to the input, and adds `bias` if it is defined. This is the transposed
    /// convolution of `out`.
    void transposed(const View& in, const View& weight, const View& out, const View& bias) {
        if (by_library(ConvolutionForm::Kind::Data, in, weight, out, bias)) return;
        if (is_direct()) return directly(&correlate_transposed<Stored>, in, out, weight, bias);
        const Stored *y = dense<Stored>(args_.context, out), *w = dense<Stored>(args_.context, weight);
        const DenseOut<Stored> to(args_.context, in);
        start_with(to.data(), in, bias);
        if (c_.group_out() == 0) return to.finish();  // there is nothing to add
        const bool pointwise = c_.is_pointwise();
        for_samples([&](int64_t first, int64_t count) {
            Stored* x = to.data() + first * c_.in_channels * c_.in_size();
            Stored* columns = pointwise ? x : room(count);
            Product p =
                product(c_.window(), c_.out_size(), c_.group_out(), pointwise && bias.defined() ? 1 : 0);
            p.a = {w, c_.group_out() * c_.window(), 1, c_.window()};
            p.b = {y + first * c_.out_channels * c_.out_size(), c_.group_out() * c_.out_size(), c_.out_size(),
                   1};
            p.out = {columns, c_.window() * c_.out_size(), c_.out_size(), 1};
            multiply_groups(p, count, 0, c_.out_channels * c_.out_size(), rows_ * c_.out_size());
            if (!pointwise)
                launch(&sum_columns<Stored>, grid_of(count * c_.in_channels * c_.in_size()), stream_, c_, x,
                       static_cast<const Stored*>(columns), count, bias.defined());
        });
        to.finish();
    }

    /// Computes `weight`, the gradient with respect to the weight.
    void weights(const View& weight, const View& in, const View& out) {
        if (by_library(ConvolutionForm::Kind::Weight, in, weight, out, kAbsent)) return;
        const DenseOut<Stored> to(args_.context, weight);
        if (is_direct()) {
            const Correlation c = in_their_format(in, out);
            launch(&correlate_weights<Stored>, grid_of_blocks(weight.numel), stream_, c, to.data(),
                   in_format<Stored>(args_.context, in, c.channels_last),
                   in_format<Stored>(args_.context, out, c.channels_last));
            return to.finish();
        }
        const Stored *x = dense<Stored>(args_.context, in), *y = dense<Stored>(args_.context, out);
        const int64_t positions = c_.out_size();
        Stored* const permuted =
            samples_ > 1 ? scratch<Stored>(args_.context, samples_ * c_.out_channels * positions) : nullptr;
        for_samples([&](int64_t first, int64_t count) {
            // The positions of all samples are adjacent, so that each group needs one product.
            const Stored* from = y + first * c_.out_channels * positions;
            const Stored* columns = columns_of(x + first * c_.in_channels * c_.in_size(), count, true);
            if (count > 1) {
                const int64_t sizes[] = {c_.out_channels, count, positions},
                              given[] = {positions, c_.out_channels * positions, 1},
                              made[] = {count * positions, positions, 1},
                              n = c_.out_channels * count * positions;
                queue_copy(View{permuted, sizes, made, n, 3, DTypeOf<Stored>::value, 1},
                           View{const_cast<Stored*>(from), sizes, given, n, 3, DTypeOf<Stored>::value, 0},
                           args_.context);
                from = permuted;
            }
            Product p = product(c_.group_out(), c_.window(), count * positions, first > 0 ? 1 : 0);
            p.count = c_.groups;
            p.a = {from, c_.group_out() * count * positions, count * positions, 1};
            p.b = {columns, c_.window() * count * positions, 1, count * positions};
            p.out = {to.data(), c_.group_out() * c_.window(), c_.window(), 1};
            multiply(args_.context->call->device, stream_, workspace(), kWorkspaceBytes, p);
        });
        to.finish();
    }

  private:
    /// Whether the sums are computed without matrix products. This is the case if each of several groups has only one
    /// input channel, because the products would then have single rows.
    bool is_direct() const { return c_.group_in() == 1 && c_.groups > 1; }

    /// The correlation for channels-last arrays if one of two arrays is channels-last, and for row-major arrays otherwise.
    Correlation in_their_format(const View& a, const View& b) const {
        Correlation c = c_;
        c.channels_last = is_channels_last(a) || is_channels_last(b);
        return c;
    }
    /// Queues `correlate` or `correlate_transposed`, which computes `made` from `given`.
    void directly(void (*kernel)(const Correlation, Stored*, const Stored*, const Stored*, const Stored*),
                  const View& made, const View& given, const View& weight, const View& bias) {
        const Correlation c = in_their_format(made, given);
        const FormatOut<Stored> to(args_.context, made, c.channels_last);
        launch(kernel, grid_of(made.numel), stream_, c, to.data(),
               in_format<Stored>(args_.context, given, c.channels_last), dense<Stored>(args_.context, weight),
               dense<Stored>(args_.context, bias));
        to.finish();
    }

    /// Computes the tensor that `kind` names, and adds `bias` to it if it is defined. Returns false if cuDNN cannot do
    /// that, or may not. All tensors are channels-last for the library if one of them is, and row-major otherwise.
    bool by_library(ConvolutionForm::Kind kind, const View& x, const View& w, const View& y,
                    const View& bias) {
        if (is_direct() || x.numel == 0 || w.numel == 0 || y.numel == 0 || !c_.is_complete() ||
            !permits(Setting::LibraryConvolutions))
            return false;
        const View* const views[] = {&x, &w, &y};
        const int written = kind == ConvolutionForm::Kind::Data     ? 0
                            : kind == ConvolutionForm::Kind::Weight ? 1
                                                                    : 2;
        const bool channels_last = is_channels_last(x) || is_channels_last(w) || is_channels_last(y);
        const FormatOut<Stored> to(args_.context, *views[written], channels_last);
        void* data[3];
        for (int i = 0; i < 3; ++i)
            data[i] = i == written
                          ? to.data()
                          : const_cast<Stored*>(in_format<Stored>(args_.context, *views[i], channels_last));
        ConvolutionForm form = form_of(kind, channels_last);
        for (const void* at : data)
            while (reinterpret_cast<uintptr_t>(at) % static_cast<unsigned>(form.alignment) != 0)
                form.alignment /= 2;
        if (!convolve_by_library(args_.context, stream_, form, data[0], data[1], data[2])) return false;
        if (bias.defined()) {
            const View& made = *views[written];
            const int64_t channels = made.size(1);
            launch(&add_to_channels<Stored>, grid_of(made.numel), stream_, to.data(),
                   dense<Stored>(args_.context, bias), channels,
                   channels_last ? 1 : made.numel / (made.size(0) * channels), made.numel);
        }
        to.finish();
        return true;
    }
    ConvolutionForm form_of(ConvolutionForm::Kind kind, bool channels_last) const {
        ConvolutionForm form = {};
        form.kind = kind;
        form.dtype = DTypeOf<Stored>::value;
        form.dims = c_.in[0] == 1 && c_.out[0] == 1 && c_.kernel[0] == 1 ? 2 : 3;
        form.channels_last = channels_last;
        form.tf32 = form.dtype == DType::Float32 && permits(Setting::Tf32Convolutions);
        form.deterministic =
            permits(Setting::DeterministicConvolutions) || permits(Setting::DeterministicAlgorithms);
        form.alignment = kConvolutionAlignment;
        const int64_t channels[3][2] = {
            {c_.batch, c_.in_channels}, {c_.out_channels, c_.group_in()}, {c_.batch, c_.out_channels}};
        const int64_t* const spatial[] = {c_.in, c_.kernel, c_.out};
        int64_t (*const sizes[])[5] = {&form.x, &form.w, &form.y};
        const int skipped = 3 - form.dims;
        for (int i = 0; i < 3; ++i) {
            std::copy_n(channels[i], 2, *sizes[i]);
            std::copy_n(spatial[i] + skipped, form.dims, *sizes[i] + 2);
        }
        std::copy_n(c_.stride + skipped, form.dims, form.stride);
        std::copy_n(c_.padding + skipped, form.dims, form.padding);
        std::copy_n(c_.dilation + skipped, form.dims, form.dilation);
        return form;
    }

    template <class F>
    void for_samples(F&& f) {
        for (int64_t first = 0; first < c_.batch; first += samples_)
            f(first, std::min(samples_, c_.batch - first));
    }
    Stored* room(int64_t samples) {
        if (!columns_) columns_ = scratch<Stored>(args_.context, samples_ * rows_ * c_.out_size());
        return columns_;
    }
    void* workspace() {
        if (!workspace_) workspace_ = scratch<char>(args_.context, kWorkspaceBytes);
        return workspace_;
    }
    /// Returns the columns of the samples that begin at `x`. If `joined` is false, there is one matrix for each sample.
    /// Otherwise there is one matrix, which contains the columns of all samples, one sample after the other.
    const Stored* columns_of(const Stored* x, int64_t samples, bool joined = false) {
        joined = joined && samples > 1;
        if (c_.is_pointwise() && !joined) return x;
        Stored* to = room(samples);
        const int64_t positions = c_.out_size();
        by_size(DTypeOf<Stored>::value, [&]<class T>(T) {
            launch(&gather_columns<T>, grid_of(samples * rows_ * positions), stream_, c_,
                   reinterpret_cast<T*>(to), reinterpret_cast<const T*>(x), samples,
                   joined ? positions : rows_ * positions, joined ? samples * positions : positions);
        });
        return to;
    }
    /// Writes the values to which the products are added later: the bias, or zeros if there is no product to add.
    void start_with(Stored* to, const View& like, const View& bias) {
        const RowMajor strides(like.sizes, like.ndim);
        const View start{to, like.sizes, strides.strides, like.numel, like.ndim, DTypeOf<Stored>::value, 1};
        if (c_.window() == 0 || c_.group_out() == 0) queue_zeros(start, args_.context);
        if (!bias.defined()) return;
        const int64_t sizes[] = {bias.numel, 1, 1, 1}, steps[] = {bias.strides[0], 0, 0, 0};
        queue_broadcast(start, View{bias.data, sizes, steps, bias.numel, like.ndim - 1, bias.dtype, 0},
                        args_.context);
    }
    Product product(int64_t m, int64_t n, int64_t k, double beta) const {
        Product p;
        p.dtype = p.result = DTypeOf<Stored>::value;
        p.m = m;
        p.n = n;
        p.k = k;
        p.alpha = 1;
        p.beta = beta;
        p.bias = nullptr;
        p.tf32 = permits(Setting::Tf32Convolutions);
        return p;
    }
    /// Multiplies every group of every sample. The batch strides of `p` are the distances between groups; the parameters
    /// a_step, b_step and out_step are the distances between samples. The loop runs over groups or over samples, whichever
    /// needs fewer launches.
    void multiply_groups(const Product& p, int64_t samples, int64_t a_step, int64_t b_step,
                         int64_t out_step) {
        if (p.m == 0 || p.n == 0 || p.k == 0) return;
        const bool by_group = c_.groups <= samples;
        const int64_t times = by_group ? c_.groups : samples;
        const auto position = [&](const Matrix& m, int64_t sample_step) {
            Matrix moved = m;
            if (by_group) moved.batch = sample_step;
            return moved;
        };
        for (int64_t i = 0; i < times; ++i) {
            Product one = p;
            one.count = by_group ? samples : c_.groups;
            one.a = position(p.a, a_step);
            one.b = position(p.b, b_step);
            one.out = position(p.out, out_step);
            const auto move = [&](Matrix& m, const Matrix& given, int64_t sample_step) {
                m.data = static_cast<const Stored*>(given.data) + i * (by_group ? given.batch : sample_step);
            };
            move(one.a, p.a, a_step);
            move(one.b, p.b, b_step);
            move(one.out, p.out, out_step);
            multiply(args_.context->call->device, stream_, workspace(), kWorkspaceBytes, one);
        }
    }

    const KernelArgs& args_;
    const Correlation c_;
    cudaStream_t stream_;
    int64_t rows_, samples_;
    Stored* columns_ = nullptr;
    void* workspace_ = nullptr;
};

/// Computes `sums`, the sum of each channel of `x`, which is not empty.
template <class Stored>
void sum_to_bias(const KernelArgs& args, const View& sums, const View& x) {
    const DenseOut<Stored> to(args.context, sums);
    const int64_t batch = x.size(0), channels = x.size(1);
    const cudaStream_t stream = queue_of(args);
    if (is_channels_last(x)) {
        const int64_t rows = x.numel / channels, share = std::max<int64_t>((rows + 255) / 256, 64),
                      parts = (rows + share - 1) / share, tiles = (channels + kLanes - 1) / kLanes;
        auto* partial = scratch<Computed<Stored>>(args.context, parts * channels);
        launch(&sum_rows<Computed<Stored>, Stored>, grid_of_blocks(tiles * parts), stream, partial,
               in_format<Stored>(args.context, x, true), rows, channels, share);
        launch(&sum_rows<Stored, Computed<Stored>>, grid_of_blocks(tiles), stream, to.data(),
               static_cast<const Computed<Stored>*>(partial), parts, channels, parts);
    } else {
        launch(&sum_channels<Stored>, grid_of_blocks(channels), stream, to.data(),
               dense<Stored>(args.context, x), batch, channels, x.numel / (batch * channels));
    }
    to.finish();
}

struct Forward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        const View &out = args.out(0), &in = args.in(0), &weight = args.in(1), &bias = args.in(2);
        if (out.numel == 0) return;
        if (args.params[3].as_bool())
            Convolution<Stored>(args, Correlation(out, weight, in, args)).transposed(out, weight, in, bias);
        else Convolution<Stored>(args, Correlation(in, weight, out, args)).forward(out, in, weight, bias);
    }
};

struct Backward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        const View &grad_in = args.out(0), &grad_weight = args.out(1), &grad_bias = args.out(2);
        const View &grad = args.in(0), &in = args.in(1), &weight = args.in(2);
        if (in.numel == 0 || grad.numel == 0) {
            for (const View* v : {&grad_in, &grad_weight})
                if (v->defined()) queue_zeros(*v, args.context);
            if (!grad_bias.defined()) return;
            // Every element of the output contains the bias, even if there is no input.
            if (grad.numel == 0) queue_zeros(grad_bias, args.context);
            else sum_to_bias<Stored>(args, grad_bias, grad);
            return;
        }
        const bool transposed = args.params[3].as_bool();
        Convolution<Stored> c(
            args, transposed ? Correlation(grad, weight, in, args) : Correlation(in, weight, grad, args));
        if (grad_in.defined()) {
            if (transposed) c.forward(grad_in, grad, weight, kAbsent);
            else c.transposed(grad_in, weight, grad, kAbsent);
        }
        if (grad_weight.defined()) c.weights(grad_weight, transposed ? grad : in, transposed ? in : grad);
        if (grad_bias.defined()) sum_to_bias<Stored>(args, grad_bias, grad);
    }
};

template <class T>
void convolve_integers(const KernelArgs& args) {
    const View &out = args.out(0), &in = args.in(0), &weight = args.in(1);
    if (out.numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const T *x = dense<T>(args.context, in), *w = dense<T>(args.context, weight),
            *b = dense<T>(args.context, args.in(2));
    const DenseOut<T> to(args.context, out);
    if (args.params[3].as_bool())
        launch(&correlate_transposed<T>, grid_of(out.numel), stream, Correlation(out, weight, in, args),
               to.data(), x, w, b);
    else
        launch(&correlate<T>, grid_of(out.numel), stream, Correlation(in, weight, out, args), to.data(), x, w,
               b);
    to.finish();
}

}  // namespace

BackendStatus convolution(const KernelArgs* args) {
    switch (const DType dtype = args->out(0).dtype) {
        case DType::UInt8: return guarded([args] { convolve_integers<uint8_t>(*args); });
        case DType::Int8: return guarded([args] { convolve_integers<int8_t>(*args); });
        case DType::Int16: return guarded([args] { convolve_integers<int16_t>(*args); });
        case DType::Int32: return guarded([args] { convolve_integers<int32_t>(*args); });
        case DType::Int64: return guarded([args] { convolve_integers<int64_t>(*args); });
        case DType::UInt16: return guarded([args] { convolve_integers<uint16_t>(*args); });
        case DType::UInt32: return guarded([args] { convolve_integers<uint32_t>(*args); });
        case DType::UInt64: return guarded([args] { convolve_integers<uint64_t>(*args); });
        default: return by_floating_dtype<Forward>(args, dtype);
    }
}
BackendStatus convolution_backward(const KernelArgs* args) {
    return by_floating_dtype<Backward>(args, args->in(0).dtype);
}

}  // namespace rushlight::cuda
