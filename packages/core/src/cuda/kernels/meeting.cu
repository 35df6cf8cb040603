// Adds, reduces or writes elements, several of which may have the same target position. Elements are sorted by position
// first, so that one thread processes a position, in the order of the elements. The result has the same bits as on the CPU,
// in every run. An index out of range writes nothing, and raises an error when the host next waits: cuda/alarm.h.
#include "cuda/kernels.h"
#include "cuda/kernels/walk.cuh"
#include "cuda/sorting.h"
#include "ops/functors/scatter.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

// --- Elements with the same position ----------------------------------------------------------------

/// `n` slices of `width` elements each. Each slice has one of `count` target positions, and several slices may have the
/// same position.
struct Meeting {
    int64_t n, count, width;
    Walk positions, inner;  // iterate over the tensor that is written
    Walk elements, inner_of_element;  // iterate over the source
};

/// Computes the target position of each element. The position of an ignored element is `count`, so that it is sorted
/// last.
__global__ void __launch_bounds__(kThreads)
    find_positions(const Chosen chosen, int64_t n, int64_t count, uint64_t* keys) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const int64_t at = chosen.at(i);
        keys[i] = static_cast<uint64_t>(at == kNowhere ? count : at);
    }
}

Sorted queue_positions(const KernelArgs& args, const Chosen& chosen, const Meeting& m) {
    for (int k = 0; k < chosen.count; ++k)
        if (chosen.of[k].size == 0)
            fail(BackendStatus::Index, "an index is out of range for a dimension of size 0");
    auto* keys = scratch<uint64_t>(args.context, m.n);
    launch(&find_positions, Grid{blocks_for(m.n), kThreads}, queue_of(args), chosen, m.n, m.count, keys);
    return queue_sort(args.context, keys, nullptr, m.n, bits_below(m.count + 1));
}

/// Calls `each(first, end, j)` for each group of slices with the same target position, and for each element j of a
/// slice. In sorted order, the slices from `first` to `end` - 1 are the group.
template <class F>
__device__ void each_meeting(const Meeting& m, const Sorted& sorted, F each) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t t = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; t < m.n * m.width;
         t += step) {
        const int64_t first = t / m.width;
        const uint64_t position = sorted.keys[first];
        if (position >= static_cast<uint64_t>(m.count) || (first > 0 && sorted.keys[first - 1] == position))
            continue;
        int64_t end = first + 1;
        while (end < m.n && sorted.keys[end] == position) ++end;
        each(first, end, t % m.width);
    }
}
template <class K, class... P>
void launch_meeting(K kernel, const KernelArgs& args, const Meeting& m, const Sorted& sorted,
                    const P&... others) {
    if (m.n * m.width > 0)
        launch(kernel, Grid{blocks_for(m.n * m.width), kThreads}, queue_of(args), m, sorted, others...);
}

// --- Reducing and writing ---------------------------------------------------------------------------

struct How {
    ScatterReduction how;
    bool include_self;
    const void* factor;  // for sums: a factor for the elements, in the dtype of the computation; or null
};

/// Returns the reduction of the elements from `first` to `end` - 1. It is computed in float32 or a wider dtype, and
/// rounded once.
template <ScatterReduction how, class T>
__device__ T reduced(const Meeting& m, const Sorted& sorted, int64_t first, int64_t end, T self,
                     const T* from, const How& given) {
    using C = Computed<T>;
    C sum = given.include_self ? static_cast<C>(self) : neutral<how, C>();
    for (int64_t k = first; k < end; ++k) {
        C x = static_cast<C>(from[m.elements.offset(sorted.numbers[k])]);
        if (how == ScatterReduction::Sum && given.factor) x = scaled(x, *static_cast<const C*>(given.factor));
        sum = combine<how, C>(sum, x);
    }
    if constexpr (how == ScatterReduction::Mean) sum = mean_of<C>(sum, end - first + given.include_self);
    return static_cast<T>(sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    reduce_meeting(const Meeting m, const Sorted sorted, T* to, const T* from, const How given) {
    each_meeting(m, sorted, [&](int64_t first, int64_t end, int64_t j) {
        T& position = to[m.positions.offset(static_cast<int64_t>(sorted.keys[first])) + m.inner.offset(j)];
        const T* source = from + m.inner_of_element.offset(j);
        const auto by = [&]<ScatterReduction how>() {
            position = reduced<how>(m, sorted, first, end, position, source, given);
        };
        switch (given.how) {
            case ScatterReduction::Sum: return by.template operator()<ScatterReduction::Sum>();
            case ScatterReduction::Prod: return by.template operator()<ScatterReduction::Prod>();
            case ScatterReduction::Mean: return by.template operator()<ScatterReduction::Mean>();
            default: break;
        }
        if constexpr (!kIsComplex<T>) {
            if (given.how == ScatterReduction::Amax) by.template operator()<ScatterReduction::Amax>();
            else by.template operator()<ScatterReduction::Amin>();
        }
    });
}

/// Writes the elements to their target positions. Of several elements with the same position, the last is written.
template <class T>
__global__ void __launch_bounds__(kThreads)
    write_meeting(const Meeting m, const Sorted sorted, T* to, const T* from) {
    each_meeting(m, sorted, [&](int64_t first, int64_t end, int64_t j) {
        to[m.positions.offset(static_cast<int64_t>(sorted.keys[first])) + m.inner.offset(j)] =
            from[m.elements.offset(sorted.numbers[end - 1]) + m.inner_of_element.offset(j)];
    });
}

void queue_reduced(const KernelArgs& args, const Chosen& chosen, const Meeting& m, const View& to,
                   const void* from, const How& how) {
    if (m.n == 0) return;
    const Sorted sorted = queue_positions(args, chosen, m);
    using Elements = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                           Half, BFloat16, float, double, Complex<float>, Complex<double>>;
    by_element_type(Elements{}, to.dtype, [&]<class T>(T) {
        launch_meeting(&reduce_meeting<T>, args, m, sorted, to.as<T>(), static_cast<const T*>(from), how);
    });
}
void queue_written(const KernelArgs& args, const Chosen& chosen, const Meeting& m, const View& to,
                   const void* from) {
    if (m.n == 0) return;
    const Sorted sorted = queue_positions(args, chosen, m);
    by_size(to.dtype, [&]<class T>(T) {
        launch_meeting(&write_meeting<T>, args, m, sorted, to.as<T>(), static_cast<const T*>(from));
    });
}
constexpr How kSum{ScatterReduction::Sum, true, nullptr};

/// Computes sums of rows or, if `by_count` is true, means of rows, in float32 or a wider dtype.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_rows(const Meeting m, const Sorted sorted, T* to, const T* from, bool by_count) {
    each_meeting(m, sorted, [&](int64_t first, int64_t end, int64_t j) {
        using C = Computed<T>;
        const C factor = by_count ? C(1) / static_cast<C>(end - first) : C(1);
        C sum = 0;
        for (int64_t k = first; k < end; ++k)
            sum += static_cast<C>(from[sorted.numbers[k] * m.width + j]) * factor;
        to[static_cast<int64_t>(sorted.keys[first]) * m.width + j] = static_cast<T>(sum);
    });
}

// --- Tensors ----------------------------------------------------------------------------------------

/// The target positions of a scatter operator along a dimension. If all elements of a slice have the same index, whole
/// slices are processed.
struct Scattered {
    Chosen chosen;
    Meeting m{};

    Scattered(const KernelArgs& args, const View& to, const View& index, const View& src, int64_t along)
        : chosen(args) {
        const int dim = static_cast<int>(along < 0 ? along + (to.ndim ? to.ndim : 1) : along);
        chosen.count = 1;
        Chosen::One& one = chosen.of[0];
        one.size = to.ndim ? to.sizes[dim] : 1;
        m.width = 1;
        bool slices = index.ndim > 1;
        for (int d = 0; slices && d < index.ndim; ++d)
            slices = d == dim || index.strides[d] == 0 || index.sizes[d] == 1;
        const auto stride_of = [](const View& v, int d) { return v.ndim ? v.strides[d] : 0; };
        if (slices) {
            m.n = index.sizes[dim];
            m.count = one.size;
            const View along{index.data, index.sizes + dim, index.strides + dim,    m.n,
                             1,          index.dtype,       index.strides[dim] == 1};
            one.data = dense<int64_t>(args.context, along);
            one.walk.push(m.n, 1);
            one.weight = 1;
            m.positions.push(m.count, to.strides[dim]);
            m.elements.push(m.n, src.strides[dim]);
            for (int d = 0; d < index.ndim; ++d) {
                if (d == dim) continue;
                m.width *= index.sizes[d];
                m.inner.push(index.sizes[d], to.strides[d]);
                m.inner_of_element.push(index.sizes[d], src.strides[d]);
            }
            return;
        }
        m.n = index.numel;
        m.count = to.numel;
        one.data = dense<int64_t>(args.context, index);
        one.walk.push(m.n, 1);
        m.positions = Walk(to);
        const RowMajor weights(to.sizes, to.ndim);
        one.weight = to.ndim ? weights.strides[dim] : 1;
        for (int d = 0; d < index.ndim; ++d) {
            chosen.others.push(index.sizes[d], d == dim || to.ndim == 0 ? 0 : weights.strides[d]);
            m.elements.push(index.sizes[d], stride_of(src, d));
        }
    }
};

/// The target positions of slices along a dimension.
struct Slices {
    Chosen chosen;
    Meeting m{};

    Slices(const KernelArgs& args, const View& to, const View& index, const View& source, int64_t along)
        : chosen(args) {
        const int dim = static_cast<int>(along < 0 ? along + (to.ndim ? to.ndim : 1) : along);
        m.n = index.numel;
        m.count = to.ndim ? to.sizes[dim] : 1;
        m.width = 1;
        chosen.count = 1;
        chosen.of[0] = {dense<int64_t>(args.context, index), Walk(), m.count, 1};
        chosen.of[0].walk.push(m.n, 1);
        m.positions.push(m.count, to.ndim ? to.strides[dim] : 0);
        m.elements.push(m.n, source.ndim ? source.strides[to.ndim ? dim : 0] : 0);
        for (int d = 0; d < to.ndim; ++d) {
            if (d == dim) continue;
            m.width *= to.sizes[d];
            m.inner.push(to.sizes[d], to.strides[d]);
            m.inner_of_element.push(to.sizes[d], source.strides[d]);
        }
    }
};

/// Returns the target positions that index tensors select. `values` is broadcast to the shape of the indexed elements.
Meeting meeting_of(const Indices& indices, const View& values) {
    Meeting m{indices.n,
              indices.positions_count,
              indices.before * indices.after,
              indices.positions,
              indices.inner,
              {},
              {}};
    for (int d = 0; d < indices.ndim; ++d) {
        const int at = d - indices.ndim + values.ndim;
        const int64_t stride = at < 0 || values.sizes[at] == 1 ? 0 : values.strides[at];
        const bool joint = d >= indices.split && d < indices.split + indices.joint_ndim;
        (joint ? m.elements : m.inner_of_element).push(indices.shape[d], stride);
    }
    return m;
}

}  // namespace

BackendStatus scatter_add(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &index = args->in(1);
        if (index.numel == 0) return;
        queue_of(*args);
        const Apart src(*args, args->in(2), to.dtype, to);
        const Scattered s(*args, to, index, src.view, args->params[0].as_int());
        queue_reduced(*args, s.chosen, s.m, to, src.view.data, kSum);
    });
}

BackendStatus scatter_reduce(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &index = args->in(1);
        if (index.numel == 0) return;
        queue_of(*args);
        const Apart src(*args, args->in(2), to.dtype, to);
        const Scattered s(*args, to, index, src.view, args->params[0].as_int());
        queue_reduced(
            *args, s.chosen, s.m, to, src.view.data,
            {scatter_reduction_of(args->params[1].as_string()), args->params[2].as_bool(), nullptr});
    });
}

BackendStatus index_add(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &index = args->in(1);
        if (index.numel == 0) return;
        queue_of(*args);
        const Apart source(*args, args->in(2), to.dtype, to);
        const Slices s(*args, to, index, source.view, args->params[0].as_int());
        const Complex<double> times = args->params[1];
        How how = kSum;
        if (times.re != 1 || times.im != 0) {
            const DType wide = compute_dtype(to.dtype);
            const View factor{scratch<char>(args->context, static_cast<int64_t>(itemsize(wide))),
                              nullptr,
                              nullptr,
                              1,
                              0,
                              wide,
                              1};
            queue_fill(factor, args->params[1], *args);
            how.factor = factor.data;
        }
        queue_reduced(*args, s.chosen, s.m, to, source.view.data, how);
    });
}

BackendStatus index_copy(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &index = args->in(1);
        if (index.numel == 0) return;
        queue_of(*args);
        const Apart source(*args, args->in(2), to.dtype, to);
        const Slices s(*args, to, index, source.view, args->params[0].as_int());
        queue_written(*args, s.chosen, s.m, to, source.view.data);
    });
}

BackendStatus put(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &numbers = args->in(1);
        if (numbers.numel == 0) return;
        queue_of(*args);
        const Apart source(*args, args->in(2), to.dtype, to);
        Chosen chosen(*args);
        chosen.from_end = true;
        chosen.count = 1;
        chosen.of[0] = {dense<int64_t>(args->context, numbers), Walk(), to.numel, 1};
        chosen.of[0].walk.push(numbers.numel, 1);
        const Meeting m{numbers.numel, to.numel, 1, Walk(to), {}, Walk(source.view), {}};
        if (args->params[0].as_bool()) queue_reduced(*args, chosen, m, to, source.view.data, kSum);
        else queue_written(*args, chosen, m, to, source.view.data);
    });
}

BackendStatus index_put(const KernelArgs* args) {
    return guarded([args] {
        const View& to = args->in(0);
        const int64_t count = args->params[0].as_int();
        queue_of(*args);
        const Apart values(*args, args->in(static_cast<int>(1 + count)), to.dtype, to);
        const Indices indices(*args, to, &args->in(1), count);
        const Meeting m = meeting_of(indices, values.view);
        if (args->params[1].as_bool()) queue_reduced(*args, indices.chosen, m, to, values.view.data, kSum);
        else queue_written(*args, indices.chosen, m, to, values.view.data);
    });
}

BackendStatus index_backward(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &grad = args->in(0);
        queue_of(*args);
        queue_zeros(out, args->context);
        const Indices indices(*args, out, &args->in(1), args->params[0].as_int());
        queue_reduced(*args, indices.chosen, meeting_of(indices, grad), out, grad.data, kSum);
    });
}

BackendStatus embedding_dense_backward(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &indices = args->in(1);
        const int64_t padding = args->params[1].as_int();
        queue_of(*args);
        queue_zeros(out, args->context);
        if (indices.numel == 0) return;
        const void* grad = dense_bytes(args->context, args->in(0));
        Chosen chosen(*args);
        if (padding >= 0) chosen.skipped = padding;
        chosen.count = 1;
        chosen.of[0] = {dense<int64_t>(args->context, indices), Walk(), out.sizes[0], 1};
        chosen.of[0].walk.push(indices.numel, 1);
        Meeting m{};
        m.n = indices.numel;
        m.count = out.sizes[0];
        m.width =
            out.sizes[1] * (is_complex(out.dtype) ? 2 : 1);  // complex numbers are twice as many real numbers
        const Sorted sorted = queue_positions(*args, chosen, m);
        by_element_type(Types<Half, BFloat16, float, double>{}, real_dtype(out.dtype), [&]<class T>(T) {
            launch_meeting(&sum_rows<T>, *args, m, sorted, out.as<T>(), static_cast<const T*>(grad),
                           args->params[2].as_bool());
        });
    });
}

}  // namespace rushlight::cuda
