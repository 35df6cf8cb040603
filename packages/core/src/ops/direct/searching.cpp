// Places in sorted sequences, membership, distinct elements, and lists of indices.
#include <algorithm>
#include <memory>
#include <numeric>

#include "bodies/permutation.h"
#include "bodies/searching.h"
#include "ops/copying.h"
#include "ops/direct/ordering.h"
#include "rushlight/backend.h"
#include "rushlight/parallel.h"
#include "tensor/promotion.h"

namespace rushlight::direct {
namespace {

// The first place at which `stays` fails; written so that a NaN goes behind everything. Halves are chosen by arithmetic: a jump
// would be guessed wrong every other time.
template <class Stays>
int64_t first_place(int64_t n, Stays stays) {
    if (n == 0) return 0;
    int64_t begin = 0;
    while (n > 1) {
        const int64_t half = n / 2;
        begin += half * static_cast<int64_t>(stays(begin + half - 1));
        n -= half;
    }
    return begin + static_cast<int64_t>(stays(begin));
}

Tensor search(const char* op, const Tensor& sequences, const TensorOrScalar& wanted, bool out_int32,
              bool right, const Tensor& sorter) {
    host_only(op, sequences);
    const TensorOrScalar both[] = {sequences, wanted};
    const DType dtype = result_dtype(both);
    RL_CHECK(sequences.dim() > 0, throw_runtime, "%s(boundaries): need at least one dimension", op);
    RL_CHECK(wanted.is_tensor() || sequences.dim() == 1, throw_runtime,
             "%s(input): a number needs boundaries of one dimension, got shape %s", op,
             to_string(sequences.sizes()).c_str());
    const IntList shape = wanted.is_tensor() ? wanted.tensor().sizes() : IntList();
    bool fits = sequences.dim() == 1;
    if (!fits && shape.size() == static_cast<size_t>(sequences.dim()))
        fits = std::equal(shape.begin(), shape.end() - 1, sequences.sizes().begin());
    RL_CHECK(
        fits, throw_runtime,
        "%s(boundaries, input): shapes %s and %s must agree but for the last dimension, or boundaries have one",
        op, to_string(sequences.sizes()).c_str(), to_string(shape).c_str());
    const int64_t n = sequences.size(-1);
    RL_CHECK(!out_int32 || n <= INT32_MAX, throw_runtime,
             "%s(out_int32): %lld boundaries are too many for int32", op, (long long)n);
    if (sorter.defined()) {
        RL_CHECK(sorter.dtype() == DType::Int64, throw_runtime, "%s(sorter): must be an int64 tensor, got %s",
                 op, name(sorter.dtype()));
        RL_CHECK(sorter.shape() == sequences.shape(), throw_runtime, "%s(sorter): needs the shape %s, got %s",
                 op, to_string(sequences.sizes()).c_str(), to_string(sorter.sizes()).c_str());
    }
    Tensor out = make_tensor(shape, out_int32 ? DType::Int32 : DType::Int64, sequences.device());
    if (is_meta(sequences)) return out;
    const Tensor sorted = row_major(sequences, dtype),
                 order = sorter.defined() ? row_major(sorter) : Tensor();
    const int64_t* at = sorter.defined() ? order.data<int64_t>() : nullptr;
    for (int64_t i = 0; at && i < order.numel(); ++i)
        RL_CHECK(at[i] >= 0 && at[i] < n, throw_runtime,
                 "%s(sorter): index %lld is out of range for %lld boundaries", op, (long long)at[i],
                 (long long)n);
    const Tensor values =
        wanted.is_tensor() ? row_major(wanted.tensor(), dtype) : one_element(op, wanted.scalar(), dtype);
    const int64_t width = sequences.dim() == 1 ? values.numel() : shape.back();
    if (values.numel() == 0) return out;
    with_type(op, dtype, [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        const T *all = sorted.data<T>(), *value = values.data<T>();
        parallel_for(0, values.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const T* s = all + i / width * n;
                const int64_t* o = at ? at + i / width * n : nullptr;
                const C v = value[i];
                auto place_in = [&](auto element) {
                    return right
                               ? first_place(n, [&](int64_t k) { return !(static_cast<C>(element(k)) > v); })
                               : first_place(n,
                                             [&](int64_t k) { return !(static_cast<C>(element(k)) >= v); });
                };
                const int64_t place = o ? place_in([&](int64_t k) { return s[o[k]]; })
                                        : place_in([&](int64_t k) { return s[k]; });
                if (out_int32) out.data<int32_t>()[i] = static_cast<int32_t>(place);
                else out.data<int64_t>()[i] = place;
            }
        });
    });
    return out;
}

bool from_right(bool right, std::optional<std::string_view> side) {
    if (!side) return right;
    RL_CHECK(*side == "left" || *side == "right", throw_runtime,
             "searchsorted(side): must be 'left' or 'right', got '%.*s'", static_cast<int>(side->size()),
             side->data());
    RL_CHECK(!(right && *side == "left"), throw_runtime, "searchsorted(side): 'left' contradicts right=True");
    return *side == "right";
}

// --- distinct elements ---

// Groups of equal neighbours among 0 .. n-1, taken in `order` (in theirs where it is empty): the first of each, which group each is
// in, and how many it has.
struct Groups {
    std::unique_ptr<int64_t[]> first, starts;  // an element of each, and where it begins in the order
    Tensor inverse;
    int64_t n, size = 0;

    template <class Equal>
    Groups(int64_t n, const std::vector<int64_t>& order, bool want_inverse, Equal equal)
        : first(new int64_t[static_cast<size_t>(n)]), starts(new int64_t[static_cast<size_t>(n)]), n(n) {
        const int64_t none = 0;
        inverse = make_tensor(IntList(want_inverse ? &n : &none, 1), DType::Int64);
        int64_t* group = want_inverse ? inverse.data<int64_t>() : nullptr;
        const int64_t* at = order.empty() ? nullptr : order.data();
        int64_t last = 0;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t here = at ? at[i] : i;
            // Written in any case, counted if it begins a group: no jump to guess.
            first[static_cast<size_t>(size)] = here;
            starts[static_cast<size_t>(size)] = i;
            size += i == 0 || !equal(last, here);
            if (group) group[here] = size - 1;
            last = here;
        }
    }
    Tensor count_tensor(bool wanted) const {
        const int64_t count = wanted ? size : 0;
        Tensor t = make_tensor(IntList(&count, 1), DType::Int64);
        for (int64_t g = 0; g < count; ++g) {
            const auto at = static_cast<size_t>(g);
            t.data<int64_t>()[g] = (g + 1 < count ? starts[at + 1] : n) - starts[at];
        }
        return t;
    }
};

// NaN last, in the order in which they come.
template <class C>
bool comes_before(C a, C b) {
    return a < b || (a == a && b != b);
}

std::vector<int64_t> numbers(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    std::iota(list.begin(), list.end(), int64_t{0});
    return list;
}

std::tuple<Tensor, Tensor, Tensor> distinct_elements(const char* op, const Tensor& input, bool consecutive,
                                                     bool return_inverse, bool return_counts) {
    const Tensor row = row_major(input);
    const int64_t n = row.numel();
    Tensor values, inverse, counts;
    with_type(op, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        const T* x = row.data<T>();
        auto equal = [&](int64_t a, int64_t b) { return static_cast<C>(x[a]) == static_cast<C>(x[b]); };
        std::vector<int64_t> order;
        if (!consecutive) {
            order.resize(static_cast<size_t>(n));
            Ordering<T>(n).first(x, n, n, false,
                                 [&](int64_t i, int64_t index) { order[static_cast<size_t>(i)] = index; });
        }
        const Groups groups(n, order, return_inverse, equal);
        const int64_t found = groups.size;
        values = make_tensor(IntList(&found, 1), input.dtype());
        for (int64_t g = 0; g < found; ++g) values.data<T>()[g] = x[groups.first[static_cast<size_t>(g)]];
        inverse = groups.inverse;
        counts = groups.count_tensor(return_counts);
    });
    if (return_inverse)
        inverse = make_view(inverse, input.sizes(), make_tensor(input.sizes(), DType::Bool).strides(), 0);
    return {values, inverse, counts};
}

std::tuple<Tensor, Tensor, Tensor> distinct_slices(const char* op, const Tensor& input, int64_t dim,
                                                   bool consecutive, bool return_inverse,
                                                   bool return_counts) {
    RL_CHECK(input.dim() > 0, throw_index, "%s(dim): a 0-d tensor has no dimension %lld", op, (long long)dim);
    const int d = wrap_dim(op, dim, input.dim());
    const int64_t n = input.sizes()[d];
    for (int k = 0; k < input.dim(); ++k)
        RL_CHECK(k == d || input.sizes()[k] > 0, throw_runtime,
                 "%s(input): slices of shape %s along dimension %d have no elements to compare", op,
                 to_string(input.sizes()).c_str(), d);
    const int64_t along[] = {d};
    const Tensor moved = take_view(input, views::movedim(input, along, kInts<0>)), rows = row_major(moved);
    const int64_t width = n ? rows.numel() / n : 0;
    std::vector<int64_t> shape = moved.shape();
    Tensor chosen, inverse, counts;
    with_type(op, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        const T* x = rows.data<T>();
        auto before = [&](int64_t a, int64_t b) {
            for (int64_t i = 0; i < width; ++i) {
                const C p = x[a * width + i], q = x[b * width + i];
                if (comes_before(p, q)) return true;
                if (comes_before(q, p)) return false;
            }
            return a < b;
        };
        auto equal = [&](int64_t a, int64_t b) {
            return std::equal(x + a * width, x + (a + 1) * width, x + b * width,
                              [](T p, T q) { return static_cast<C>(p) == static_cast<C>(q); });
        };
        std::vector<int64_t> order = numbers(n);
        if (!consecutive) std::sort(order.begin(), order.end(), before);
        const Groups groups(n, order, return_inverse, equal);
        shape[0] = groups.size;
        chosen = make_tensor(shape, input.dtype());
        for (int64_t g = 0; g < groups.size; ++g)
            std::copy_n(x + groups.first[static_cast<size_t>(g)] * width, width,
                        chosen.data<T>() + g * width);
        inverse = groups.inverse;
        counts = groups.count_tensor(return_counts);
    });
    return {row_major(take_view(chosen, views::movedim(chosen, kInts<0>, along))), inverse, counts};
}

// --- lists of indices ---

// a + b within [0, limit].
int64_t clamped_sum(int64_t a, int64_t b, int64_t limit) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? limit : 0;
    return std::clamp<int64_t>(sum, 0, limit);
}

// The columns in front of the diagonal that begins at `offset`, in all rows.
__int128 before_diagonal(const char* op, int64_t rows, int64_t columns, int64_t offset) {
    RL_CHECK(rows >= 0 && columns >= 0, throw_runtime,
             "%s(row, col): must not be negative, got %lld and %lld", op, (long long)rows,
             (long long)columns);
    // Rows have none at first, then one more each, at last all of them.
    const int64_t none = offset < 0 ? std::min(rows, -std::max(offset, -INT64_MAX)) : 0;
    const int64_t ramp =
        std::max(none, clamped_sum(columns, offset == INT64_MIN ? INT64_MAX : -offset, rows));
    const __int128 first = static_cast<__int128>(none) + offset,
                   last = static_cast<__int128>(ramp) - 1 + offset;
    return (first + last) * (ramp - none) / 2 + static_cast<__int128>(rows - ramp) * columns;
}

// The elements of rows [from(row), to(row)), `count` in all. Rows without elements are at the start or at the end.
template <class Range>
Tensor triangle_indices(const char* op, __int128 count_, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad, Range range) {
    const DType result = dtype.value_or(DType::Int64);
    RL_CHECK(is_integral(result), throw_not_implemented, "%s(dtype): must be an integer dtype, got %s", op,
             name(result));
    RL_CHECK(!requires_grad, throw_runtime, "%s(requires_grad): integers have no gradient", op);
    RL_CHECK(count_ <= INT64_MAX / 2, throw_runtime, "%s(row, col): too many elements", op);
    const auto count = static_cast<int64_t>(count_);
    const int64_t shape[] = {2, count};
    Tensor out = make_tensor(shape, DType::Int64);
    int64_t *row = out.data<int64_t>(), *column = row + count;
    const int64_t* const end = row + count;
    for (int64_t i = range.first; row != end; ++i) {
        auto [from, to] = range.of(i);
        for (int64_t j = from; j < to; ++j) {
            *row++ = i;
            *column++ = j;
        }
    }
    const Device target = resolve(device.value_or(Device{}));
    if (result == DType::Int64 && target == out.device()) return out;
    Tensor converted = make_tensor(shape, result, target);
    copy_into(converted, out);
    return converted;
}
}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
    return search("searchsorted", sorted_sequence, input, out_int32, from_right(right, side), sorter);
}
Tensor searchsorted_number(const Tensor& sorted_sequence, Scalar input, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor& sorter) {
    return search("searchsorted", sorted_sequence, input, out_int32, from_right(right, side), sorter);
}
Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
    RL_CHECK(boundaries.dim() == 1, throw_runtime,
             "bucketize(boundaries): must have one dimension, got shape %s",
             to_string(boundaries.sizes()).c_str());
    return search("bucketize", boundaries, input, out_int32, right, Tensor());
}
Tensor bucketize_number(Scalar input, const Tensor& boundaries, bool out_int32, bool right) {
    RL_CHECK(boundaries.dim() == 1, throw_runtime,
             "bucketize(boundaries): must have one dimension, got shape %s",
             to_string(boundaries.sizes()).c_str());
    return search("bucketize", boundaries, input, out_int32, right, Tensor());
}

Tensor isin(const TensorOrScalar& elements, const TensorOrScalar& test_elements, bool, bool invert) {
    RL_CHECK(elements.is_tensor() || test_elements.is_tensor(), throw_type,
             "isin(elements, test_elements): one of them must be a tensor");
    const TensorOrScalar both[] = {elements, test_elements};
    for (const TensorOrScalar& one : both) {
        if (!one.is_tensor()) continue;
        host_only("isin", one.tensor());
        RL_CHECK(one.tensor().dtype() != DType::Bool, throw_runtime, "isin: not defined for dtype bool");
    }
    const DType dtype = result_dtype(both);
    auto dense = [&](const TensorOrScalar& v) {
        return v.is_tensor() ? row_major(v.tensor(), dtype) : one_element("isin", v.scalar(), dtype);
    };
    const Device device = (elements.is_tensor() ? elements : test_elements).tensor().device();
    if (device.type == DeviceType::Meta)
        return make_tensor(elements.is_tensor() ? elements.tensor().sizes() : IntList(), DType::Bool, device);
    const Tensor x = dense(elements), known = dense(test_elements);
    Tensor out = make_tensor(x.sizes(), DType::Bool);
    with_type("isin", dtype, [&](auto zero) {
        using T = decltype(zero);
        using C = Computed<T>;
        std::vector<C> sorted;
        for (int64_t i = 0; i < known.numel(); ++i)
            if (const C v = known.data<T>()[i]; v == v) sorted.push_back(v);
        std::sort(sorted.begin(), sorted.end());
        bool* found = out.data<bool>();
        const C* at = sorted.data();
        const auto n = static_cast<int64_t>(sorted.size());
        parallel_for(0, x.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const C v = x.data<T>()[i];
                const int64_t place = first_place(n, [&](int64_t k) { return !(at[k] >= v); });
                found[i] = (place < n && at[place] == v) != invert;
            }
        });
    });
    return out;
}

std::tuple<Tensor, Tensor, Tensor> _unique(const Tensor& input, std::optional<int64_t> dim, bool consecutive,
                                           bool return_inverse, bool return_counts, std::string_view caller) {
    const std::string op(caller);
    RL_CHECK(input.device().type == DeviceType::CPU, throw_not_implemented,
             "%s: no kernel for device %s, or the number of distinct elements is not known there", op.c_str(),
             name(input.device()).c_str());
    return dim ? distinct_slices(op.c_str(), input, *dim, consecutive, return_inverse, return_counts)
               : distinct_elements(op.c_str(), input, consecutive, return_inverse, return_counts);
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad) {
    struct {
        int64_t first, offset, columns;
        auto of(int64_t i) const { return std::pair(int64_t{0}, clamped_sum(i + 1, offset, columns)); }
    } lower{std::max<int64_t>(0, -std::max(offset, -INT64_MAX)), offset, col};
    const int64_t behind = offset == INT64_MAX ? offset : offset + 1;
    return triangle_indices("tril_indices", before_diagonal("tril_indices", row, col, behind), dtype, device,
                            requires_grad, lower);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad) {
    struct {
        int64_t first, offset, columns;
        auto of(int64_t i) const { return std::pair(clamped_sum(i, offset, columns), columns); }
    } upper{0, offset, col};
    const __int128 all = static_cast<__int128>(row) * col;
    return triangle_indices("triu_indices", all - before_diagonal("triu_indices", row, col, offset), dtype,
                            device, requires_grad, upper);
}

}  // namespace rushlight::direct
