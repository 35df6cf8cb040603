// Elements by rank, found without sorting whole lines, and the most frequent ones.
#include <algorithm>
#include <limits>

#include "bodies/statistics.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// The index of the element of a rank, NaN being largest; of equal ones that which a stable sort puts there.
// rank(known) is given how many elements are not NaN.
template <class T, class Rank>
int64_t find_rank(const T* x, int64_t stride, int64_t n, Computed<T>* sorted, Rank rank) {
    int64_t known = 0;
    for (int64_t i = 0; i < n; ++i) {
        const Computed<T> v = x[i * stride];
        if (v == v) sorted[known++] = v;
    }
    int64_t wanted = rank(known), i = 0;
    if (wanted >= known) {
        for (wanted -= known;; ++i)
            if (const Computed<T> v = x[i * stride]; v != v && wanted-- == 0) return i;
    }
    std::nth_element(sorted, sorted + wanted, sorted + known);
    const Computed<T> value = sorted[wanted];
    int64_t before = std::count(sorted, sorted + wanted, value);
    for (;; ++i)
        if (x[i * stride] == value && before-- == 0) return i;
}

// The last element of the most frequent value, of equally frequent ones the smallest.
template <class T>
int64_t find_mode(const T* x, int64_t stride, int64_t n, Computed<T>* sorted) {
    int64_t known = 0;
    for (int64_t i = 0; i < n; ++i) {
        const Computed<T> v = x[i * stride];
        if (v == v) sorted[known++] = v;
    }
    if (known == 0) return 0;
    std::sort(sorted, sorted + known);
    Computed<T> value = sorted[0];
    for (int64_t i = 0, most = 0, run; i < known; i += run) {
        for (run = 1; i + run < known && sorted[i + run] == sorted[i];) ++run;
        if (run > most) {
            most = run;
            value = sorted[i];
        }
    }
    for (int64_t i = n - 1;; --i)
        if (x[i * stride] == value) return i;
}

void check_line(const char* op, const Tensor& input, int dim) {
    RL_CHECK(input.dim() == 0 || input.sizes()[dim] > 0, throw_index,
             "%s(dim): dimension %d of shape %s has no elements to choose from", op, dim,
             to_string(input.sizes()).c_str());
}
void no_bools(const char* op, const Tensor& input) {
    RL_CHECK(input.dtype() != DType::Bool, throw_not_implemented, "%s: not defined for dtype bool", op);
}

// find(x, stride, n, sorted) gives an index for each line; `sorted` has room for n elements.
template <class Find>
std::tuple<Tensor, Tensor> choose(const char* op, const Tensor& input, int dim, bool keepdim, Find find) {
    host_only(op, input);
    std::vector<int64_t> shape = reduced_shape(input, dim, keepdim);
    Tensor values = make_tensor(shape, input.dtype(), input.device()),
           indices = make_tensor(shape, DType::Int64, input.device());
    if (is_meta(input) || values.numel() == 0) return {values, indices};
    const StridedLines lines(input, dim);
    with_type(op, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* data = input.data<T>();
        T* value = values.data<T>();
        int64_t* index = indices.data<int64_t>();
        parallel_for(0, lines.count, lines.grain(), [&](int64_t begin, int64_t end) {
            std::vector<Computed<T>> sorted(static_cast<size_t>(lines.n));
            for (int64_t line = begin; line < end; ++line) {
                const T* x = data + lines.offset(line);
                index[line] = find(x, lines.stride, lines.n, sorted.data());
                value[line] = x[index[line] * lines.stride];
            }
        });
    });
    return {values, indices};
}

template <class Rank>
std::tuple<Tensor, Tensor> choose_rank(const char* op, const Tensor& input, int dim, bool keepdim,
                                       Rank rank) {
    no_bools(op, input);
    check_line(op, input, dim);
    return choose(op, input, dim, keepdim, [&](const auto* x, int64_t stride, int64_t n, auto* sorted) {
        return find_rank(x, stride, n, sorted, [&](int64_t known) { return rank(known, n); });
    });
}

int64_t median_rank(int64_t known, int64_t n) { return known < n ? known : (n - 1) / 2; }
int64_t nanmedian_rank(int64_t known, int64_t) { return std::max<int64_t>(known - 1, 0) / 2; }

template <class Rank>
Tensor choose_of_all(const char* op, const Tensor& input, Rank rank) {
    host_only(op, input);
    no_bools(op, input);
    if (input.numel() == 0) {
        RL_CHECK(input.is_floating_point(), throw_runtime,
                 "%s(input): of no elements it is NaN, which dtype %s does not have", op,
                 name(input.dtype()));
        if (is_meta(input)) return make_tensor({}, input.dtype(), input.device());
        return one_element(op, Scalar(std::numeric_limits<double>::quiet_NaN()), input.dtype());
    }
    const int64_t count = input.numel();
    Tensor line = is_meta(input) ? make_tensor(IntList(&count, 1), input.dtype(), input.device())
                                 : make_view(row_major(input), IntList(&count, 1), kInts<1>,
                                             input.is_contiguous() ? input.impl()->offset() : 0);
    return std::get<0>(choose_rank(op, line, 0, false, rank));
}

}  // namespace

Tensor median(const Tensor& input) { return choose_of_all("median", input, median_rank); }
Tensor nanmedian(const Tensor& input) { return choose_of_all("nanmedian", input, nanmedian_rank); }
std::tuple<Tensor, Tensor> median_dim(const Tensor& input, int64_t dim, bool keepdim) {
    return choose_rank("median", input, wrap_dim("median", dim, input.dim()), keepdim, median_rank);
}
std::tuple<Tensor, Tensor> nanmedian_dim(const Tensor& input, int64_t dim, bool keepdim) {
    return choose_rank("nanmedian", input, wrap_dim("nanmedian", dim, input.dim()), keepdim, nanmedian_rank);
}

std::tuple<Tensor, Tensor> kthvalue(const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
    int d = wrap_dim("kthvalue", dim, input.dim());
    check_line("kthvalue", input, d);
    const int64_t n = input.dim() ? input.sizes()[d] : 1;
    RL_CHECK(k >= 1 && k <= n, throw_runtime,
             "kthvalue(k): must be between 1 and the %lld elements of dimension %d, got %lld", (long long)n,
             d, (long long)k);
    return choose_rank("kthvalue", input, d, keepdim, [&](int64_t, int64_t) { return k - 1; });
}

std::tuple<Tensor, Tensor> mode(const Tensor& input, int64_t dim, bool keepdim) {
    int d = wrap_dim("mode", dim, input.dim());
    check_line("mode", input, d);
    return choose("mode", input, d, keepdim, [](const auto* x, int64_t stride, int64_t n, auto* sorted) {
        return find_mode(x, stride, n, sorted);
    });
}

}  // namespace rushlight::direct
