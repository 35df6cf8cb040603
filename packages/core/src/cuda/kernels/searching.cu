// Positions in sorted sequences, unique elements and rows, and repeated indices.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "cuda/kernels/marks.cuh"
#include "cuda/ordering.h"
#include "ops/functors/order.h"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

// --- Positions -----------------------------------------------------------------------------------------

/// Finds the insertion positions of values in a sorted sequence of `n` numbers. Each row of `width` values has a
/// sequence of its own, or all rows have the same sequence.
template <class T>
struct FindPositions {
    void* out;
    const T *values, *sorted;
    const int64_t* order;  // the order of a sequence that is not sorted, or null
    int64_t n, width;
    bool shared, right, narrow;
    Alarm alarm;

    __device__ void operator()(int64_t i) const {
        using C = Computed<T>;
        const int64_t row = shared ? 0 : i / width * n;
        const C value = static_cast<C>(values[i]);
        const int64_t at = first_position(n, [&](int64_t k) {
            const int64_t position = order ? alarm.checked(order[row + k], n) : k;
            return goes_behind(value, static_cast<C>(sorted[row + position]), right);
        });
        if (narrow) static_cast<int32_t*>(out)[i] = static_cast<int32_t>(at);
        else static_cast<int64_t*>(out)[i] = at;
    }
};
struct CheckOrder {
    const int64_t* order;
    int64_t n;
    Alarm alarm;
    __device__ void operator()(int64_t i) const { alarm.checked(order[i], n); }
};

template <class T>
struct IsAmong {
    bool* out;
    const T *values, *sorted;
    int64_t n;
    bool invert;
    __device__ void operator()(int64_t i) const {
        using C = Computed<T>;
        const C value = static_cast<C>(values[i]);
        // NaN is sorted last, and never equal.
        const int64_t at = first_position(n, [&](int64_t k) { return static_cast<C>(sorted[k]) < value; });
        out[i] = (at < n && static_cast<C>(sorted[at]) == value) != invert;
    }
};

// --- Groups of equal elements or rows ---------------------------------------------------------------

/// Determines whether row number `i` in the sorted order begins a group, which means that the row differs from the row
/// before it.
template <class T>
struct FindHeads {
    bool* heads;
    const T* rows;
    const int64_t* order;  // null: the rows are in order
    int64_t width;
    __device__ void operator()(int64_t i) const {
        using C = Computed<T>;
        bool differs = i == 0;
        for (int64_t k = 0; !differs && k < width; ++k) {
            const int64_t a = order ? order[i - 1] : i - 1, b = order ? order[i] : i;
            differs = !(static_cast<C>(rows[a * width + k]) == static_cast<C>(rows[b * width + k]));
        }
        heads[i] = differs;
    }
};
struct Heads {
    const bool* heads;
    int64_t n;
    __device__ bool operator[](int64_t i) const { return heads[i]; }
};
struct WriteStarts {
    int64_t* starts;
    __device__ void operator()(int64_t i, int64_t at) const { starts[at] = i; }
};
struct WriteInverse {
    int64_t* inverse;
    const int64_t *order, *starts;
    int64_t groups;
    __device__ void operator()(int64_t i) const {
        const int64_t group = first_position(groups, [&](int64_t g) { return starts[g] <= i; }) - 1;
        inverse[order ? order[i] : i] = group;
    }
};
struct WriteCounts {
    int64_t* counts;
    const int64_t* starts;
    int64_t groups, n;
    __device__ void operator()(int64_t g) const {
        counts[g] = (g + 1 < groups ? starts[g + 1] : n) - starts[g];
    }
};
template <class T>
struct WriteHeads {
    T* out;
    const T* rows;
    const int64_t *order, *starts;
    int64_t width;
    __device__ void operator()(int64_t i) const {
        const int64_t start = starts[i / width];
        out[i] = rows[(order ? order[start] : start) * width + i % width];
    }
};

/// Computes sort keys from one column. The rows are already sorted by the columns after it.
template <class T>
struct ColumnKeys {
    uint64_t* keys;
    const T* rows;
    const int64_t* order;
    int64_t width, column;
    __device__ void operator()(int64_t i) const {
        keys[i] = key_of(rows[(order ? order[i] : i) * width + column]);
    }
};

/// Rows of `width` elements in sorted order, and for each row whether it begins a group of equal rows.
struct Groups {
    const void* rows;
    int64_t n, width;
    int64_t* order = nullptr;
    bool* heads;

    Groups(const KernelArgs& args, int64_t rows_count) : n(rows_count) {
        const View& in = args.in(0);
        queue_of(args);
        width = n ? in.numel / n : 0;
        rows = dense_bytes(args.context, in);
        heads = scratch<bool>(args.context, n);
        by_ordered_type(in.dtype, [&]<class T>(T) {
            const T* x = static_cast<const T*>(rows);
            if (!args.params[0].as_bool()) sort(args, x);
            queue_for_each(args, n, FindHeads<T>{heads, x, order, width});
        });
    }
    Heads marks() const { return {heads, n}; }

  private:
    template <class T>
    void sort(const KernelArgs& args, const T* x) {
        if (width == 1) {
            order = queue_order(args.context, x, DTypeOf<T>::value, 1, n, false);
            return;
        }
        auto* keys = scratch<uint64_t>(args.context, n);
        for (int64_t column = width - 1; column >= 0; --column) {
            queue_for_each(args, n, ColumnKeys<T>{keys, x, order, width, column});
            const Sorted sorted = queue_sort(args.context, keys, order, n, 8 * static_cast<int>(sizeof(T)));
            keys = sorted.keys;
            order = sorted.numbers;
        }
    }
};

void queue_count(const KernelArgs& args, int64_t rows) {
    const Groups groups(args, rows);
    queue_counts(args, groups.marks(), args.out(0).as<int64_t>());
}
void queue_groups(const KernelArgs& args, int64_t rows) {
    const View &values = args.out(0), &inverse = args.out(1), &counts = args.out(2);
    if (rows == 0) return;
    const Groups groups(args, rows);
    const int64_t size = groups.width ? values.numel / groups.width : values.sizes[0];
    auto* starts = scratch<int64_t>(args.context, size);
    queue_each(args, groups.marks(), queue_counts(args, groups.marks(), nullptr), WriteStarts{starts});
    queue_for_each(args, inverse.numel, WriteInverse{inverse.as<int64_t>(), groups.order, starts, size});
    queue_for_each(args, counts.numel, WriteCounts{counts.as<int64_t>(), starts, size, rows});
    by_size(values.dtype, [&]<class T>(T) {
        queue_for_each(args, values.numel,
                       WriteHeads<T>{values.as<T>(), static_cast<const T*>(groups.rows), groups.order, starts,
                                     groups.width});
    });
}

// --- Repeated indices -------------------------------------------------------------------------------

/// Determines how often each index is repeated. The operator receives either one number of repetitions for all indices
/// or one number for each index.
struct Repeats {
    int64_t* counts;
    const int64_t* given;
    int64_t step;
    Alarm alarm;
    __device__ void operator()(int64_t i) const {
        const int64_t count = given[i * step];
        if (count < 0) alarm.raise(Cause::Negative);
        counts[i] = count < 0 ? 0 : count;
    }
};
struct WriteRepeated {
    int64_t* out;
    const int64_t* offsets;
    int64_t size;
    __device__ void operator()(int64_t i) const {
        out[i] = first_position(size, [&](int64_t k) { return offsets[k] <= i; }) - 1;
    }
};
int64_t* queue_repeats(const KernelArgs& args, int64_t* total) {
    const View& repeats = args.in(0);
    const int64_t size = args.params[0].as_int();
    queue_of(args);
    auto* counts = scratch<int64_t>(args.context, size);
    queue_for_each(args, size,
                   Repeats{counts, dense<int64_t>(args.context, repeats), repeats.numel == 1 ? 0 : 1,
                           alarm_of(args.context)});
    queue_offsets(args.context, counts, size, total);
    return counts;
}

}  // namespace

BackendStatus searchsorted(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &sequence = args->in(0), &values = args->in(1), &sorter = args->in(2);
        queue_of(*args);
        const int64_t* order = dense<int64_t>(args->context, sorter);
        const int64_t n = sequence.size(-1);
        if (order) queue_for_each(*args, sorter.numel, CheckOrder{order, n, alarm_of(args->context)});
        if (out.numel == 0) return;
        const void *sorted = dense_bytes(args->context, sequence),
                   *given = dense_bytes(args->context, values);
        by_ordered_type(values.dtype, [&]<class T>(T) {
            queue_for_each(
                *args, out.numel,
                FindPositions<T>{out.data, static_cast<const T*>(given), static_cast<const T*>(sorted), order,
                                 n, sequence.ndim == 1 ? 1 : values.size(-1), sequence.ndim == 1,
                                 args->params[1].as_bool(), out.dtype == DType::Int32,
                                 alarm_of(args->context)});
        });
    });
}

BackendStatus isin_sorted(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &values = args->in(0), &sorted = args->in(1);
        if (out.numel == 0) return;
        queue_of(*args);
        const void *given = dense_bytes(args->context, values), *known = dense_bytes(args->context, sorted);
        by_ordered_type(values.dtype, [&]<class T>(T) {
            queue_for_each(*args, out.numel,
                           IsAmong<T>{out.as<bool>(), static_cast<const T*>(given),
                                      static_cast<const T*>(known), sorted.numel, args->params[0].as_bool()});
        });
    });
}

BackendStatus unique_elements_count(const KernelArgs* args) {
    return guarded([args] { queue_count(*args, args->in(0).numel); });
}
BackendStatus unique_elements(const KernelArgs* args) {
    return guarded([args] { queue_groups(*args, args->in(0).numel); });
}
BackendStatus unique_rows_count(const KernelArgs* args) {
    return guarded([args] { queue_count(*args, args->in(0).sizes[0]); });
}
BackendStatus unique_rows(const KernelArgs* args) {
    return guarded([args] { queue_groups(*args, args->in(0).sizes[0]); });
}

BackendStatus repeat_index_count(const KernelArgs* args) {
    return guarded([args] { queue_repeats(*args, args->out(0).as<int64_t>()); });
}
BackendStatus repeat_index(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        const int64_t* offsets = queue_repeats(*args, nullptr);
        queue_for_each(*args, out.numel, WriteRepeated{out.as<int64_t>(), offsets, args->params[0].as_int()});
    });
}

}  // namespace rushlight::cuda
