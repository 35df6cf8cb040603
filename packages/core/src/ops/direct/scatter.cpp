// Reading and writing at scattered places. Indices are checked before anything is written; what meets at one place is
// combined in the order of the indices by one thread.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bodies/scatter.h"
#include "ops/broadcasting.h"
#include "ops/copying.h"
#include "ops/direct/lines.h"
#include "ops/direct/odometer.h"
#include "ops/numbers.h"
#include "ops/outputs.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

void require_cpu(const char* op, const Tensor& t) {
    RL_CHECK(t.device().type == DeviceType::CPU, throw_not_implemented, "%s: no kernel for device %s", op,
             name(t.device()).c_str());
}
void require_int64(const char* op, const Tensor& index) {
    RL_CHECK(index.dtype() == DType::Int64, throw_runtime, "%s(index): must be an int64 tensor, got %s", op,
             name(index.dtype()));
}
void require_same_dtype(const char* op, const char* argument, const Tensor& input, const Tensor& source) {
    RL_CHECK(source.dtype() == input.dtype(), throw_runtime, "%s(%s): must have input's dtype %s, got %s", op,
             argument, name(input.dtype()), name(source.dtype()));
}

// Calls f with an unsigned integer as wide as an element.
template <class F>
void with_size(DType t, F f) {
    switch (itemsize(t)) {
        case 1: return f(uint8_t());
        case 2: return f(uint16_t());
        case 4: return f(uint32_t());
        case 8: return f(uint64_t());
        default: return f(std::pair<uint64_t, uint64_t>());
    }
}

// --- by number in the flattened tensor ---

Odometer elements_of(const Tensor& t) {
    Odometer o;
    for (int d = 0; d < t.dim(); ++d) o.push(t.sizes()[d], t.strides()[d]);
    return o;
}
void check_numbers(const char* op, const int64_t* number, int64_t count, const Tensor& input) {
    const int64_t n = input.numel();
    for (int64_t i = 0; i < count; ++i)
        RL_CHECK(number[i] >= -n && number[i] < n, throw_index,
                 "%s(index): index %lld is out of range for a tensor of %lld elements", op,
                 (long long)number[i], (long long)n);
}

// --- slices along a dimension ---

// The places of a tensor's slices: `before` and `after` are the dimensions in front of and behind it, `run` elements lie
// side by side at the end.
struct Slices {
    Odometer before, after;
    int64_t run = 1, stride = 0, size = 1;

    Slices(const Tensor& t, int dim) {
        for (int d = 0; d < t.dim(); ++d)
            if (d < dim) before.push(t.sizes()[d], t.strides()[d]);
            else if (d > dim) after.push(t.sizes()[d], t.strides()[d]);
        run = after.take_run();
        if (t.dim()) {
            stride = t.strides()[dim];
            size = t.sizes()[dim];
        }
    }
    // body(to, from): runs of slice number[k] of this tensor and of slice k of a row-major one of `count` slices.
    template <class Body>
    void each(const int64_t* number, int64_t count, Body body) const {
        const int64_t pieces = before.count * after.count;
        parallel_for(0, pieces, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(count * run, 1)),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t piece = begin; piece < end; ++piece) {
                             const int64_t b = piece / after.count, a = piece % after.count;
                             const int64_t base = before.offset(b) + after.offset(a);
                             for (int64_t k = 0; k < count; ++k)
                                 body(base + number[k] * stride, ((b * count + k) * after.count + a) * run);
                         }
                     });
    }
};

// The slices' numbers, checked and counted from the front.
std::vector<int64_t> slice_numbers(const char* op, const Tensor& index, int dim, int64_t size,
                                   bool negative) {
    Tensor row = row_major(index);
    const int64_t* v = row.data<int64_t>();
    std::vector<int64_t> numbers(v, v + row.numel());
    for (int64_t& n : numbers) {
        RL_CHECK(n >= (negative ? -size : 0) && n < size, throw_index,
                 "%s(index): index %lld is out of range for dimension %d of size %lld", op, (long long)n, dim,
                 (long long)size);
        if (n < 0) n += size;
    }
    return numbers;
}

// --- reducing ---

enum class Reduce { Sum, Prod, Mean, Amax, Amin };
Reduce reduce_of(const char* op, std::string_view name) {
    if (name == "sum") return Reduce::Sum;
    if (name == "prod") return Reduce::Prod;
    if (name == "mean") return Reduce::Mean;
    if (name == "amax") return Reduce::Amax;
    if (name == "amin") return Reduce::Amin;
    throw_runtime("%s(reduce): must be sum, prod, mean, amax or amin, got '%.*s'", op,
                  static_cast<int>(name.size()), name.data());
}

template <Reduce how, class C>
C combine(C a, C b) {
    if constexpr (how == Reduce::Sum || how == Reduce::Mean) return static_cast<C>(a + b);
    else if constexpr (how == Reduce::Prod) return static_cast<C>(a * b);
    else if constexpr (how == Reduce::Amax)
        return (b > a) | (b != b) ? b : a;  // both looked at: no jump to guess
    else return (b < a) | (b != b) ? b : a;
}
template <Reduce how, class C>
C neutral() {
    if constexpr (how == Reduce::Sum || how == Reduce::Mean) return 0;
    else if constexpr (how == Reduce::Prod) return 1;
    else if constexpr (std::is_floating_point_v<C>)
        return how == Reduce::Amax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
    else return how == Reduce::Amax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
}
template <class C>
C mean_of(C sum, int64_t count) {
    if constexpr (kIsComplex<C>) return sum / C(static_cast<Real<C>>(count));
    else if constexpr (std::is_floating_point_v<C>) return sum / static_cast<C>(count);
    else {  // rounded down
        const auto total = static_cast<int64_t>(sum);
        return static_cast<C>(total / count - (total % count != 0 && total < 0));
    }
}

// Lines of `index` and `src`, row-major (outer, n, inner), and of the tensor that is written. They are taken in blocks, so
// that memory is read in order, and each by one thread: no two lines write one place.
struct Scatter {
    static constexpr int64_t kWidth = 32;
    Odometer others;  // over the index's shape without dim, with the tensor's strides
    int64_t outer = 1, n = 1, inner = 1, stride = 0, size = 1;
    const int64_t* index;

    // One index for a whole slice, of a row-major tensor: rows meet rows.
    bool slices = false;

    template <class T, Reduce how>
    void run_slices(T* to, const T* src, bool include_self) const {
        using C = Computed<T>;
        constexpr int64_t kColumns = 1024;
        std::vector<int64_t> met(static_cast<size_t>(size), include_self ? 1 : 0);
        for (int64_t i = 0; i < n; ++i) ++met[static_cast<size_t>(index[i])];
        const int64_t across = (inner + kColumns - 1) / kColumns;
        parallel_for(0, outer * across, std::max<int64_t>(1, (1 << 14) / (n * std::min(inner, kColumns) + 1)),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t block = begin; block < end; ++block) {
                             const int64_t o = block / across, first = block % across * kColumns;
                             const int64_t width = std::min(kColumns, inner - first);
                             const auto row = [&](int64_t at) {
                                 return to + (o * size + at) * inner + first;
                             };
                             for (int64_t i = 0; !include_self && i < n; ++i)
                                 std::fill_n(row(index[i]), width, static_cast<T>(neutral<how, C>()));
                             for (int64_t i = 0; i < n; ++i) {
                                 T* __restrict place = row(index[i]);
                                 const T* __restrict from = src + (o * n + i) * inner + first;
#pragma omp simd
                                 for (int64_t j = 0; j < width; ++j)
                                     place[j] = static_cast<T>(
                                         combine<how, C>(static_cast<C>(place[j]), static_cast<C>(from[j])));
                             }
                             for (int64_t at = 0; how == Reduce::Mean && at < size; ++at) {
                                 const int64_t count = met[static_cast<size_t>(at)];
                                 if (count < 2) continue;
                                 T* place = row(at);
                                 for (int64_t j = 0; j < width; ++j)
                                     place[j] = static_cast<T>(mean_of<C>(static_cast<C>(place[j]), count));
                             }
                         }
                     });
    }

    template <class T, Reduce how>
    void run(T* to, const T* src, bool include_self) const {
        using C = Computed<T>;
        if (slices) return run_slices<T, how>(to, src, include_self);
        const int64_t across = (inner + kWidth - 1) / kWidth;
        parallel_for(
            0, outer * across, std::max<int64_t>(1, (1 << 14) / (n * std::min(inner, kWidth) + 1)),
            [&](int64_t begin, int64_t end) {
                int64_t base[kWidth];
                std::vector<int64_t> met(
                    how == Reduce::Mean ? static_cast<size_t>(size * std::min(inner, kWidth)) : 0);
                for (int64_t block = begin; block < end; ++block) {
                    const int64_t o = block / across, first = block % across * kWidth;
                    const int64_t width = std::min(kWidth, inner - first);
                    for (int64_t j = 0; j < width; ++j) base[j] = others.offset(o * inner + first + j);
                    auto each = [&](auto body) {
                        if (inner == 1) {  // a line by itself
                            T* const line = to + base[0];
                            for (int64_t i = 0, at = o * n; i < n; ++i, ++at)
                                body(line[index[at] * stride], at, index[at]);
                            return;
                        }
                        for (int64_t i = 0; i < n; ++i)
                            for (int64_t j = 0; j < width; ++j) {
                                const int64_t at = (o * n + i) * inner + first + j;
                                body(to[base[j] + index[at] * stride], at, index[at] * width + j);
                            }
                    };
                    if (!include_self)
                        each([](T& place, int64_t, int64_t) { place = static_cast<T>(neutral<how, C>()); });
                    each([&](T& place, int64_t at, int64_t) {
                        place =
                            static_cast<T>(combine<how, C>(static_cast<C>(place), static_cast<C>(src[at])));
                    });
                    if constexpr (how == Reduce::Mean) {
                        std::fill(met.begin(), met.end(), include_self ? 1 : 0);
                        each([&](T&, int64_t, int64_t k) { ++met[static_cast<size_t>(k)]; });
                        each([&](T& place, int64_t, int64_t k) {
                            int64_t& count = met[static_cast<size_t>(k)];
                            if (count) place = static_cast<T>(mean_of<C>(static_cast<C>(place), count));
                            count = 0;
                        });
                    }
                }
            });
    }
};

}  // namespace

Tensor take(const Tensor& input, const Tensor& index) {
    require_int64("take", index);
    Tensor out = make_tensor(index.sizes(), input.dtype(), input.device());
    if (is_meta(input)) return out;
    require_cpu("take", input);
    const Tensor row = row_major(index);
    const int64_t *number = row.data<int64_t>(), n = input.numel();
    check_numbers("take", number, row.numel(), input);
    const Odometer elements = elements_of(input);
    const bool dense = input.is_contiguous();
    with_size(input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* from = input.data<T>();
        T* to = out.data<T>();
        parallel_for(0, row.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t at = number[i] < 0 ? number[i] + n : number[i];
                to[i] = from[dense ? at : elements.offset(at)];
            }
        });
    });
    return out;
}

Tensor put_(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
    require_int64("put_", index);
    require_cpu("put_", input);
    require_same_dtype("put_", "source", input, source);
    RL_CHECK(index.numel() == source.numel(), throw_index,
             "put_(source): needs an element for each of the %lld indices, got shape %s",
             (long long)index.numel(), to_string(source.sizes()).c_str());
    const Tensor row = row_major(index), values = row_major(source);
    const int64_t *number = row.data<int64_t>(), n = input.numel();
    check_numbers("put_", number, row.numel(), input);
    check_writable("put_", input);
    begin_write("put_", input);
    const Odometer elements = elements_of(input);
    auto place = [&](int64_t i) {
        const int64_t at = number[i] < 0 ? number[i] + n : number[i];
        return input.is_contiguous() ? at : elements.offset(at);
    };
    if (!accumulate) {
        with_size(input.dtype(), [&](auto zero) {
            using T = decltype(zero);
            for (int64_t i = 0; i < row.numel(); ++i) input.data<T>()[place(i)] = values.data<T>()[i];
        });
        return input;
    }
    const bool truth = input.dtype() == DType::Bool;
    with_number("put_", input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        for (int64_t i = 0; i < row.numel(); ++i) {
            T& to = input.data<T>()[place(i)];
            const C a = to, b = values.data<T>()[i];
            to = static_cast<T>(truth ? static_cast<C>(a != C() || b != C()) : static_cast<C>(a + b));
        }
    });
    return input;
}

Tensor index_copy_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
    const int d = wrap_dim("index_copy_", dim, input.dim());
    require_int64("index_copy_", index);
    RL_CHECK(index.dim() <= 1, throw_index, "index_copy_(index): must have one dimension, got shape %s",
             to_string(index.sizes()).c_str());
    require_same_dtype("index_copy_", "source", input, source);
    RL_CHECK((source.dim() == 0 ? 1
              : input.dim()     ? source.size(d)
                                : source.numel()) == index.numel(),
             throw_index, "index_copy_(source): needs a slice for each of the %lld indices, got shape %s",
             (long long)index.numel(), to_string(source.sizes()).c_str());
    bool fits = source.dim() == input.dim() || source.dim() + input.dim() <= 1;
    for (int k = 0; fits && k < source.dim() && k < input.dim(); ++k)
        fits = k == d || source.sizes()[k] == input.sizes()[k];
    RL_CHECK(fits, throw_runtime,
             "index_copy_(source): slices of shape %s do not fit those of %s along dimension %d",
             to_string(source.sizes()).c_str(), to_string(input.sizes()).c_str(), d);
    require_cpu("index_copy_", input);
    const Slices slices(input, d);
    const std::vector<int64_t> numbers = slice_numbers("index_copy_", index, d, slices.size, false);
    const Tensor values = row_major(source);
    check_writable("index_copy_", input);
    begin_write("index_copy_", input);
    if (values.numel() == 0) return input;
    const auto size = static_cast<int64_t>(itemsize(input.dtype()));
    char* to = input.data<char>();
    const char* from = values.data<char>();
    slices.each(numbers.data(), index.numel(), [&](int64_t place, int64_t at) {
        std::memmove(to + place * size, from + at * size, static_cast<size_t>(slices.run * size));
    });
    return input;
}

Tensor index_fill_(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
    const int d = wrap_dim("index_fill_", dim, input.dim());
    RL_CHECK(index.dtype() == DType::Int64, throw_index,
             "index_fill_(index): must be an int64 tensor, got %s", name(index.dtype()));
    RL_CHECK(index.dim() <= 1, throw_runtime, "index_fill_(index): must have one dimension, got shape %s",
             to_string(index.sizes()).c_str());
    require_cpu("index_fill_", input);
    const Scalar number = element_of("index_fill_", "value", value, input.dtype());
    const Slices slices(input, d);
    const std::vector<int64_t> numbers = slice_numbers("index_fill_", index, d, slices.size, true);
    check_writable("index_fill_", input);
    begin_write("index_fill_", input);
    if (input.numel() == 0) return input;
    const Tensor one = one_element("index_fill_", number, input.dtype());
    with_size(input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T fill = *one.data<T>();
        T* to = input.data<T>();
        slices.each(numbers.data(), index.numel(),
                    [&](int64_t place, int64_t) { std::fill_n(to + place, slices.run, fill); });
    });
    return input;
}

Tensor _scatter_reduce_(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self, std::string_view caller) {
    const std::string owned(caller);
    const char* op = owned.c_str();
    const Reduce how = reduce_of(op, reduce);
    require_same_dtype(op, "src", input, src);
    RL_CHECK(!(input.dtype() == DType::Bool && how == Reduce::Mean), throw_not_implemented,
             "%s(reduce): the mean of bools is not defined", op);
    require_cpu(op, input);
    const int d = wrap_dim(op, dim, input.dim());
    if (index.numel() == 0) {  // of any shape and dtype
        check_writable(op, input);
        begin_write(op, input);
        return input;
    }
    RL_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, throw_runtime,
             "%s(index): must be an int64 or int32 tensor, got %s", op, name(index.dtype()));
    bool fits = index.dim() == input.dim() || (index.dim() <= 1 && input.dim() <= 1);
    for (int k = 0; fits && index.numel() && k < std::min(index.dim(), input.dim()); ++k)
        fits = k == d || index.sizes()[k] <= input.sizes()[k];
    fits = fits && std::ranges::equal(index.sizes(), src.sizes());
    RL_CHECK(fits, throw_runtime, "%s(index, src): shapes %s and %s do not fit %s", op,
             to_string(index.sizes()).c_str(), to_string(src.sizes()).c_str(),
             to_string(input.sizes()).c_str());
    Scatter scatter;
    for (int k = 0; k < index.dim(); ++k) {
        const int64_t length = index.sizes()[k];
        if (k != d) scatter.others.push(length, input.dim() ? input.strides()[k] : 0);
        (k < d ? scatter.outer : k == d ? scatter.n : scatter.inner) *= length;
    }
    if (input.dim()) {
        scatter.stride = input.strides()[d];
        scatter.size = input.sizes()[d];
    }
    // What lies in the memory that is written is read before.
    const auto apart = [&](const Tensor& t) {
        if (t.impl()->storage() != input.impl()->storage()) return t;
        Tensor own = make_tensor(t.sizes(), t.dtype());
        copy_into(own, t);
        return own;
    };
    scatter.slices = index.dim() > 1 && index.numel() > 0 && input.is_contiguous();
    for (int k = 0; scatter.slices && k < index.dim(); ++k)
        scatter.slices = k == d || (index.strides()[k] == 0 && index.sizes()[k] == input.sizes()[k]);
    const Tensor line = scatter.slices ? make_view(index, IntList(&scatter.n, 1),
                                                   IntList(&index.strides()[d], 1), index.impl()->offset())
                                       : index;
    const Tensor places = row_major(apart(line), DType::Int64), values = row_major(apart(src));
    scatter.index = places.data<int64_t>();
    // PyTorch's classes: a slice's number is an index, an element's is not.
    const auto fail = caller.starts_with("index") ? throw_index : throw_runtime;
    for (int64_t i = 0; i < places.numel(); ++i)
        RL_CHECK(scatter.index[i] >= 0 && scatter.index[i] < scatter.size, fail,
                 "%s(index): index %lld is out of range for dimension %d of size %lld", op,
                 (long long)scatter.index[i], d, (long long)scatter.size);
    check_writable(op, input);
    begin_write("scatter_reduce_", input);
    if (places.numel() == 0) return input;
    const bool truth = input.dtype() == DType::Bool;  // their sum is or, their product and
    with_number(op, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        T* to = input.data<T>();
        const T* from = values.data<T>();
        if constexpr (kIsComplex<T>) {
            RL_CHECK(how == Reduce::Sum || how == Reduce::Prod || how == Reduce::Mean, throw_not_implemented,
                     "%s(reduce): complex numbers have no order", op);
            if (how == Reduce::Sum) return scatter.run<T, Reduce::Sum>(to, from, include_self);
            if (how == Reduce::Prod) return scatter.run<T, Reduce::Prod>(to, from, include_self);
            return scatter.run<T, Reduce::Mean>(to, from, include_self);
        } else
            switch (truth && how == Reduce::Sum    ? Reduce::Amax
                    : truth && how == Reduce::Prod ? Reduce::Amin
                                                   : how) {
                case Reduce::Sum: return scatter.run<T, Reduce::Sum>(to, from, include_self);
                case Reduce::Prod: return scatter.run<T, Reduce::Prod>(to, from, include_self);
                case Reduce::Mean: return scatter.run<T, Reduce::Mean>(to, from, include_self);
                case Reduce::Amax: return scatter.run<T, Reduce::Amax>(to, from, include_self);
                case Reduce::Amin: return scatter.run<T, Reduce::Amin>(to, from, include_self);
            }
    });
    return input;
}

Tensor masked_scatter_(const Tensor& input, const Tensor& mask, const Tensor& source) {
    RL_CHECK(mask.dtype() == DType::Bool, throw_runtime,
             "masked_scatter_(mask): must be a bool tensor, got %s", name(mask.dtype()));
    require_same_dtype("masked_scatter_", "source", input, source);
    require_cpu("masked_scatter_", input);
    RL_CHECK(
        broadcast_shapes("masked_scatter_", "input", input.sizes(), "mask", mask.sizes()) == input.shape(),
        throw_runtime, "masked_scatter_(mask): shape %s does not broadcast to input's %s",
        to_string(mask.sizes()).c_str(), to_string(input.sizes()).c_str());
    Tensor full = make_tensor(input.sizes(), DType::Bool);
    if (full.numel() == 0) return input;
    copy_into(full, mask);
    const bool* chosen = full.data<bool>();
    const int64_t n = input.numel(), wanted = std::count(chosen, chosen + n, true);
    RL_CHECK(wanted <= source.numel(), throw_runtime,
             "masked_scatter_(source): the mask has %lld true elements, source only %lld", (long long)wanted,
             (long long)source.numel());
    const Tensor values = row_major(source);
    check_writable("masked_scatter_", input);
    begin_write("masked_scatter_", input);
    const Odometer elements = elements_of(input);
    with_size(input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        T* to = input.data<T>();
        const T* from = values.data<T>();
        for (int64_t i = 0; i < n; ++i)
            if (chosen[i]) to[input.is_contiguous() ? i : elements.offset(i)] = *from++;
    });
    return input;
}

}  // namespace rushlight::direct
