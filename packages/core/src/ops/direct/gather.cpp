// Gather and scatter: one index for every element, along a dimension.
#include <algorithm>

#include "bodies/indexing.h"
#include "cpu/places.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/direct/lines.h"
#include "ops/direct/odometer.h"
#include "ops/outputs.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// Rows are what the index holds along its last dimension: `width` elements that lie `step` apart in the tensor but for what the
// index says, which counts `stride`. Rows of one group may meet at one place, those of two groups cannot.
struct Along {
    Tensor index;  // contiguous, int64
    int dim;
    int64_t size, stride, width = 1, step = 0, group = 1;
    Odometer
        rows;  // over the index's shape without the last dimension, with the tensor's strides, 0 along dim

    Along(const char* op, const Tensor& t, int64_t d, const Tensor& given, const Tensor* source) {
        RL_CHECK(t.device().type == DeviceType::CPU, throw_not_implemented, "%s: not implemented on %s", op,
                 name(t.device()).c_str());
        dim = wrap_dim(op, d, t.dim());
        if (given.numel() == 0) {  // of any shape and dtype
            rows.count = 0;
            return;
        }
        RL_CHECK(is_integral(given.dtype()), throw_runtime, "%s(index): must be an integer tensor, got %s",
                 op, name(given.dtype()));
        int64_t n = std::max<int64_t>(t.dim(), 1);
        RL_CHECK(std::max<int64_t>(given.dim(), 1) == n, throw_runtime,
                 "%s(index): needs as many dimensions as the tensor, got shapes %s and %s", op,
                 to_string(given.sizes()).c_str(), to_string(t.sizes()).c_str());
        const int last = static_cast<int>(given.dim()) - 1;
        for (int64_t k = 0; k <= last; ++k) {
            const int64_t length = given.sizes()[k];
            RL_CHECK(k == dim || t.dim() == 0 || length <= t.sizes()[k], throw_runtime,
                     "%s(index): shape %s exceeds %s at dimension %lld", op, to_string(given.sizes()).c_str(),
                     to_string(t.sizes()).c_str(), (long long)k);
            if (source)
                RL_CHECK(std::max<int64_t>(source->dim(), 1) == given.dim() &&
                             length <= (source->dim() ? source->sizes()[k] : 1),
                         throw_runtime, "%s(index, src): index of shape %s exceeds src of shape %s", op,
                         to_string(given.sizes()).c_str(), to_string(source->sizes()).c_str());
            const int64_t along = k == dim || t.dim() == 0 ? 0 : t.strides()[k];
            if (k == last) {
                width = length;
                step = along;
            } else {
                rows.push(length, along);
                if (k >= dim) group *= length;
            }
        }
        size = t.dim() ? t.sizes()[dim] : 1;
        stride = t.dim() ? t.strides()[dim] : 0;
        index = row_major(given, DType::Int64);
        const int64_t* v = index.data<int64_t>();
        const int64_t count = index.numel();
        if (cpu::place_kernels().within(v, count, size)) return;
        const int64_t* bad = std::find_if(v, v + count, [&](int64_t i) { return i < 0 || i >= size; });
        throw_runtime("%s(index): index %lld is out of range for dimension %d of size %lld", op,
                      (long long)*bad, dim, (long long)size);
    }

    // body(base, at, n): n indices from number `at` on, the first of which counts from element `base` of the tensor.
    template <class Body>
    void each(Body body) const {
        constexpr int64_t kWork = 1 << 14;
        auto walk = [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
            for (int64_t row = first; row < last; ++row)
                body(rows.offset(row) + begin * step, row * width + begin, end - begin);
        };
        if (rows.count > group || step == 0)
            parallel_for(0, group ? rows.count / group : 0, kWork / (group * width + 1) + 1,
                         [&](int64_t first, int64_t last) { walk(first * group, last * group, 0, width); });
        else
            parallel_for(0, width, kWork / (rows.count + 1) + 1,
                         [&](int64_t begin, int64_t end) { walk(0, rows.count, begin, end); });
    }
};

// write(to, from) for every element of the index.
template <class T, class Write>
void write_each(const Along& along, T* to, const T* from, Write write) {
    const int64_t *index = along.index.data<int64_t>(), step = along.step, stride = along.stride;
    along.each([=](int64_t base, int64_t at, int64_t n) {
        for (int64_t j = 0; j < n; ++j) write(to[base + j * step + index[at + j] * stride], from[at + j]);
    });
}

void scatter(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
             bool accumulate) {
    Along along(op, input, dim, index, &src);
    RL_CHECK(src.dtype() == input.dtype(), throw_runtime, "%s(src): must have input's dtype %s, got %s", op,
             name(input.dtype()), name(src.dtype()));
    check_writable(op, input);
    begin_write(op, input);
    if (index.numel() == 0) return;
    // The part of src that index covers.
    ViewSpec part(src);
    for (int64_t k = 0; src.dim() && k < index.dim(); ++k) part.sizes[k] = index.sizes()[k];
    Tensor values = row_major(take_view(src, part));
    if (values.impl()->storage() == input.impl()->storage()) {
        values = make_tensor(values.sizes(), values.dtype());
        copy_into(values, take_view(src, part));
    }
    const DType dtype = input.dtype();
    if (!accumulate) {
        auto overwrite = [&](auto zero) {
            using T = decltype(zero);
            write_each(along, input.data<T>(), values.data<T>(), [](T& to, const T& from) { to = from; });
        };
        switch (itemsize(dtype)) {
            case 1: return overwrite(uint8_t());
            case 2: return overwrite(uint16_t());
            case 4: return overwrite(uint32_t());
            case 8: return overwrite(uint64_t());
            default: return overwrite(std::pair<uint64_t, uint64_t>());
        }
    }
    with_number(op, dtype, [&](auto zero) {
        using T = decltype(zero);
        if (dtype == DType::Bool)
            write_each(along, input.data<T>(), values.data<T>(),
                       [](T& to, const T& from) { to = static_cast<T>(to != T() || from != T()); });
        else
            write_each(along, input.data<T>(), values.data<T>(), [](T& to, const T& from) {
                to = static_cast<T>(static_cast<Computed<T>>(to) + static_cast<Computed<T>>(from));
            });
    });
}

}  // namespace

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index_, bool sparse_grad) {
    RL_CHECK(!sparse_grad, throw_not_implemented, "gather(sparse_grad=True): not supported");
    Along along("gather", input, dim, index_, nullptr);
    Tensor out = make_tensor(index_.sizes(), input.dtype());
    const size_t size = itemsize(input.dtype());
    const auto read = cpu::place_kernels().read;
    const char* from = input.data<char>();
    char* to = out.data<char>();
    along.each([&](int64_t base, int64_t at, int64_t n) {
        read(to + static_cast<size_t>(at) * size, from + base * static_cast<int64_t>(size), size,
             along.index.data<int64_t>() + at, n, along.stride, along.step);
    });
    return out;
}

Tensor scatter_(const Tensor& input, int64_t dim, const Tensor& index_, const Tensor& src) {
    scatter("scatter_", input, dim, index_, src, false);
    return input;
}
Tensor scatter__value(const Tensor& input, int64_t dim, const Tensor& index_, Scalar value) {
    Tensor src = make_tensor(index_.sizes(), input.dtype());
    fill_with(src, value);
    scatter("scatter_", input, dim, index_, src, false);
    return input;
}
Tensor scatter_add_(const Tensor& input, int64_t dim, const Tensor& index_, const Tensor& src) {
    scatter("scatter_add_", input, dim, index_, src, true);
    return input;
}

}  // namespace rushlight::direct
