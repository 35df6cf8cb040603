// Attention and its gradients: matrix products and a masked softmax of the scores. Some heads are processed at a time, to
// limit scratch memory. Scores are computed in float32, or in float64 for float64 inputs.
//
// The heads of `query` that share a head of `key` are adjacent, so they form one matrix of `heads / key heads * length`
// rows.
#include <algorithm>

#include "cuda/blas.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// A mask. A bool mask hides the scores where it is false, and any other mask is added to the scores. The mask is
/// broadcast by strides of 0.
struct Mask {
    const void* data = nullptr;
    bool is_bool = false;
    int64_t batch = 0, head = 0, row = 0, column = 0;

    explicit Mask(const View& v) {
        if (!v.defined()) return;
        const auto stride = [&](int from_last) {
            const int d = v.ndim - from_last;
            return d < 0 || v.sizes[d] == 1 ? int64_t{0} : v.strides[d];
        };
        data = v.data;
        is_bool = v.dtype == DType::Bool;
        batch = stride(4);
        head = stride(3);
        row = stride(2);
        column = stride(1);
    }
};

/// The scores of `count` successive pairs of a batch element and a key head. `first` is the number of the first pair.
/// Each pair has rows() rows of `sources` scores.
struct Scores {
    int64_t first, count, key_heads, shared, targets, sources;
    Mask mask;
    bool causal;

    __host__ __device__ int64_t rows() const { return shared * targets; }
    int64_t elements() const { return count * rows() * sources; }
    Rows layout() const { return Rows(count * rows(), sources, 1); }

    /// Returns the score to which the mask has been applied: minus infinity if the mask hides the score.
    template <class Stored, class T>
    __device__ T masked(T score, int64_t row, int64_t source) const {
        const int64_t pair = first + row / rows(), target = row % rows() % targets;
        const T hidden = -static_cast<T>(INFINITY);
        if (causal && source > target) return hidden;
        if (!mask.data) return score;
        const int64_t head = pair % key_heads * shared + row % rows() / targets;
        const int64_t at =
            pair / key_heads * mask.batch + head * mask.head + target * mask.row + source * mask.column;
        if (mask.is_bool) return static_cast<const uint8_t*>(mask.data)[at] ? score : hidden;
        return score + static_cast<T>(static_cast<const Stored*>(mask.data)[at]);
    }
};

/// The factors of dropout for the weights of some heads. `kept` is null without dropout.
template <class T>
struct Dropout {
    const uint8_t* kept;
    T scale;

    __device__ T operator()(int64_t i) const { return !kept ? T(1) : kept[i] ? scale : T(0); }
};

/// Computes two results for each row of scores: the softmax, multiplied by the dropout factors, and the logarithm of
/// the sum of the exponentials. If all scores of a row are hidden, these results are zeros and minus infinity.
template <class Stored, class T>
__global__ void __launch_bounds__(kThreads)
    softmax_of_scores(const Scores s, const Rows layout, Stored* out, T* log_sums, const T* scores,
                      const Dropout<T> factor) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % layout.lanes, at_once = kThreads / layout.lanes;
    for (int64_t group = blockIdx.x; group * at_once < layout.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / layout.lanes;
        const int64_t n = row < layout.count ? layout.size : 0, at = row * layout.size;
        const T none = -static_cast<T>(INFINITY);
        const auto score = [&](int64_t i) { return s.masked<Stored>(scores[at + i], row, i); };
        T top = none, total = 0;
        for (int64_t i = lane; i < n; i += layout.lanes) top = Larger()(score(i), top);
        top = over_lanes(room.x, lane, layout.lanes, top, Larger());
        const bool idle = top == none;
        for (int64_t i = lane; i < n; i += layout.lanes) total += idle ? T(0) : std::exp(score(i) - top);
        total = over_lanes(room.x, lane, layout.lanes, total, Plus());
        for (int64_t i = lane; i < n; i += layout.lanes)
            out[at + i] = Stored(idle ? T(0) : std::exp(score(i) - top) / total * factor(at + i));
        if (log_sums && lane == 0 && row < layout.count) log_sums[row] = idle ? none : top + std::log(total);
    }
}

/// Recomputes the softmax from the scores and the logarithms of the sums of exponentials.
template <class Stored, class T>
__global__ void __launch_bounds__(kThreads)
    softmax_again(const Scores s, Stored* out, const T* scores, const T* log_sums, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const int64_t row = i / s.sources;
        const T score = s.masked<Stored>(scores[i], row, i % s.sources);
        out[i] = Stored(score == -static_cast<T>(INFINITY) ? T(0) : std::exp(score - log_sums[row]));
    }
}

/// Computes the dot product of each row of `a` and the same row of `b`.
template <class Stored, class T>
__global__ void __launch_bounds__(kThreads)
    dot_rows(const Rows layout, T* out, const Stored* a, const Stored* b) {
    __shared__ Values<T> room;
    const uint32_t lane = threadIdx.x % layout.lanes, at_once = kThreads / layout.lanes;
    for (int64_t group = blockIdx.x; group * at_once < layout.count; group += gridDim.x) {
        const int64_t row = group * at_once + threadIdx.x / layout.lanes;
        const int64_t n = row < layout.count ? layout.size : 0, at = row * layout.size;
        T sum = 0;
        for (int64_t i = lane; i < n; i += layout.lanes)
            sum += static_cast<T>(a[at + i]) * static_cast<T>(b[at + i]);
        sum = over_lanes(room.x, lane, layout.lanes, sum, Plus());
        if (lane == 0 && row < layout.count) out[row] = sum;
    }
}

/// Multiplies weights by the dropout factors.
template <class Stored, class T>
__global__ void __launch_bounds__(kThreads)
    drop(Stored* out, const Stored* p, const Dropout<T> factor, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        out[i] = Stored(static_cast<T>(p[i]) * factor(i));
}

/// Computes the gradient of the scores before scaling: p * (factor * grad - dot) * scale, where `dot` is the dot
/// product of the row.
template <class Stored, class T>
__global__ void __launch_bounds__(kThreads)
    score_gradients(Stored* out, const Stored* p, const T* grad, const T* dots, const Dropout<T> factor,
                    T scale, int64_t sources, int64_t n) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        out[i] = Stored(static_cast<T>(p[i]) * (factor(i) * grad[i] - dots[i / sources]) * scale);
}

Grid grid_of(int64_t elements) { return {blocks_for(elements), kThreads}; }

/// The maximum size in bytes of the scores that are computed at a time. The scores of a single head of `key` are
/// computed together even if they are larger. Tests use a smaller value.
#ifndef RUSHLIGHT_CUDA_SCORE_BYTES
#define RUSHLIGHT_CUDA_SCORE_BYTES (int64_t{256} << 20)
#endif
constexpr int64_t kScoreBytes = RUSHLIGHT_CUDA_SCORE_BYTES;

/// One call of the operator. Its operands are (batch, heads, length, depth).
template <class Stored>
class Attention {
  public:
    using T = Computed<Stored>;

    Attention(const KernelArgs& args, const View& query, const View& key, const View& value, const View& mask,
              const View& kept, bool causal, double scale, double dropout_p)
        : args_(args),
          stream_(queue_of(args)),
          pairs_(key.size(0) * key.size(1)),
          depth_(query.size(3)),
          width_(value.size(3)),
          scale_(scale),
          dropout_{kept.defined() ? dense<uint8_t>(args.context, as_bytes(kept)) : nullptr,
                   static_cast<T>(1 / (1 - dropout_p))},
          scores_{0,           0,          key.size(1), query.size(1) / key.size(1), query.size(2),
                  key.size(2), Mask(mask), causal},
          query_(dense<Stored>(args.context, query)),
          key_(dense<Stored>(args.context, key)),
          value_(dense<Stored>(args.context, value)) {
        const int64_t bytes =
            scores_.rows() * scores_.sources * static_cast<int64_t>(sizeof(T) + 2 * sizeof(Stored));
        at_once_ = std::clamp<int64_t>(kScoreBytes / std::max<int64_t>(bytes, 1), 1, pairs_);
        const int64_t most = at_once_ * scores_.rows() * scores_.sources;
        raw_ = scratch<T>(args.context, most);
        shares_ = scratch<Stored>(args.context, most);
        workspace_ = scratch<char>(args.context, kWorkspaceBytes);
    }

    void forward(const View& out, const View& log_sum) {
        const DenseOut<Stored> to(args_.context, out);
        const DenseOut<T> sums(args_.context, log_sum);
        for_pairs([&](const Scores& s) {
            compute_scores(s);
            launch(&softmax_of_scores<Stored, T>, s.layout().grid(), stream_, s, s.layout(), shares_,
                   sums.data() ? sums.data() + s.first * s.rows() : nullptr, static_cast<const T*>(raw_),
                   dropout_of(s));
            multiply(s.count, s.rows(), width_, s.sources, 1, row_major(shares_, s.rows(), s.sources),
                     row_major(value_ + s.first * s.sources * width_, s.sources, width_),
                     row_major(to.data() + s.first * s.rows() * width_, s.rows(), width_));
        });
        to.finish();
        sums.finish();
    }

    void backward(const View& grad_query, const View& grad_key, const View& grad_value, const View& grad,
                  const View& output, const View& log_sum) {
        const DenseOut<Stored> dq(args_.context, grad_query), dk(args_.context, grad_key),
            dv(args_.context, grad_value);
        const Stored *dy = dense<Stored>(args_.context, grad), *y = dense<Stored>(args_.context, output);
        const T* sums = dense<T>(args_.context, log_sum);
        const Rows outputs(pairs_ * scores_.rows(), width_, 1);
        T* dots = scratch<T>(args_.context, outputs.count);
        launch(&dot_rows<Stored, T>, outputs.grid(), stream_, outputs, dots, dy, y);
        Stored* ds = scratch<Stored>(args_.context, at_once_ * scores_.rows() * scores_.sources);
        for_pairs([&](const Scores& s) {
            const int64_t m = s.rows(), n = s.sources, at_rows = s.first * m, at_sources = s.first * n;
            const Stored *q = query_ + at_rows * depth_, *k = key_ + at_sources * depth_,
                         *v = value_ + at_sources * width_, *g = dy + at_rows * width_;
            compute_scores(s);
            if (s.elements() > 0)
                launch(&softmax_again<Stored, T>, grid_of(s.elements()), stream_, s, shares_,
                       static_cast<const T*>(raw_), sums + at_rows, s.elements());
            const Stored* weights = shares_;
            if (dropout_.kept && s.elements() > 0) {
                launch(&drop<Stored, T>, grid_of(s.elements()), stream_, ds,
                       static_cast<const Stored*>(shares_), dropout_of(s), s.elements());
                weights = ds;
            }
            multiply(s.count, n, width_, m, 1, transposed(weights, m, n), row_major(g, m, width_),
                     row_major(dv.data() + at_sources * width_, n, width_));
            multiply(s.count, m, n, width_, 1, row_major(g, m, width_), transposed(v, n, width_),
                     row_major(raw_, m, n), DTypeOf<T>::value);
            if (s.elements() > 0)
                launch(&score_gradients<Stored, T>, grid_of(s.elements()), stream_, ds,
                       static_cast<const Stored*>(shares_), static_cast<const T*>(raw_),
                       static_cast<const T*>(dots + at_rows), dropout_of(s), static_cast<T>(scale_), n,
                       s.elements());
            multiply(s.count, m, depth_, n, 1, row_major(ds, m, n), row_major(k, n, depth_),
                     row_major(dq.data() + at_rows * depth_, m, depth_));
            multiply(s.count, n, depth_, m, 1, transposed(ds, m, n), row_major(q, m, depth_),
                     row_major(dk.data() + at_sources * depth_, n, depth_));
        });
        dq.finish();
        dk.finish();
        dv.finish();
    }

  private:
    template <class F>
    void for_pairs(F&& f) {
        for (int64_t first = 0; first < pairs_; first += at_once_) {
            Scores s = scores_;
            s.first = first;
            s.count = std::min(at_once_, pairs_ - first);
            f(s);
        }
    }
    /// The dropout mask and the weights both have the row-major shape (batch, heads, targets, sources).
    Dropout<T> dropout_of(const Scores& s) const {
        return {dropout_.kept ? dropout_.kept + s.first * s.rows() * s.sources : nullptr, dropout_.scale};
    }
    static View as_bytes(View v) {
        v.dtype = DType::UInt8;
        return v;
    }
    /// Batches of row-major matrices, and of their transposes.
    template <class E>
    static Matrix row_major(const E* data, int64_t rows, int64_t columns) {
        return {data, rows * columns, columns, 1};
    }
    static Matrix transposed(const Stored* data, int64_t rows, int64_t columns) {
        return {data, rows * columns, 1, columns};
    }
    void compute_scores(const Scores& s) {
        multiply(s.count, s.rows(), s.sources, depth_, scale_,
                 row_major(query_ + s.first * s.rows() * depth_, s.rows(), depth_),
                 transposed(key_ + s.first * s.sources * depth_, s.sources, depth_),
                 row_major(raw_, s.rows(), s.sources), DTypeOf<T>::value);
    }
    void multiply(int64_t count, int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a,
                  const Matrix& b, const Matrix& out, DType result = DTypeOf<Stored>::value) {
        if (m == 0 || n == 0) return;
        if (k == 0) {
            const int64_t size = count * m * n, stride = 1;
            return queue_zeros(View{const_cast<void*>(out.data), &size, &stride, size, 1, result, 1},
                               args_.context);
        }
        const Product p{DTypeOf<Stored>::value,        result, count, m, n, k, a, b, out, alpha, 0, nullptr,
                        permits(Setting::Tf32Products)};
        cuda::multiply(args_.context->call->device, stream_, workspace_, kWorkspaceBytes, p);
    }

    const KernelArgs& args_;
    cudaStream_t stream_;
    int64_t pairs_, depth_, width_, at_once_;
    double scale_;
    Dropout<T> dropout_;
    Scores scores_;
    const Stored *query_, *key_, *value_;
    T* raw_;  // scores, and the gradients of the softmax's output
    Stored* shares_;  // the output of the softmax
    void* workspace_;
};

/// A mask that is not bool has the dtype of `query`.
struct Forward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        const View& out = args.out(0);
        if (out.numel == 0) return;
        Attention<Stored>(args, args.in(0), args.in(1), args.in(2), args.in(3), args.in(4),
                          args.params[0].as_bool(), args.params[1].as_float(), args.params[2].as_float())
            .forward(out, args.out(1));
    }
};
struct Backward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        const View &grad = args.in(0), &output = args.in(6);
        if (output.numel == 0) {
            for (int i = 0; i < 3; ++i) queue_zeros(args.out(i), args.context);
            return;
        }
        Attention<Stored>(args, args.in(1), args.in(2), args.in(3), args.in(4), args.in(5),
                          args.params[0].as_bool(), args.params[1].as_float(), args.params[2].as_float())
            .backward(args.out(0), args.out(1), args.out(2), grad, output, args.in(7));
    }
};

}  // namespace

BackendStatus attention(const KernelArgs* args) {
    return by_floating_dtype<Forward>(args, args->out(0).dtype);
}
BackendStatus attention_backward(const KernelArgs* args) {
    return by_floating_dtype<Backward>(args, args->in(0).dtype);
}

}  // namespace rushlight::cuda
