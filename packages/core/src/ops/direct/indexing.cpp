// Reading and writing by index tensors, in NumPy's full generality.
#include <cstring>

#include "bodies/indexing.h"
#include "bodies/reshape.h"
#include "bodies/slicing.h"
#include "cpu/places.h"
#include "ops/broadcasting.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/direct/masking.h"
#include "ops/direct/odometer.h"
#include "ops/outputs.h"
#include "ops/views.h"
#include "rushlight/half.h"
#include "rushlight/ops/mul.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

void require_cpu(const char* op, const Tensor& t) {
    RL_CHECK(t.device().type == DeviceType::CPU, throw_not_implemented, "%s: not implemented on %s", op,
             name(t.device()).c_str());
}

// Adds, or copies, `n` elements.
using Combine = void (*)(char* to, const char* from, int64_t n);
template <class T>
void add(char* to, const char* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        T& a = reinterpret_cast<T*>(to)[i];
        const T& b = reinterpret_cast<const T*>(from)[i];
        if constexpr (std::is_same_v<T, bool>) a = a || b;
        else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
            a = T(static_cast<float>(a) + static_cast<float>(b));
        else a = static_cast<T>(a + b);
    }
}
template <size_t size>
void copy(char* to, const char* from, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * size);
}

Combine copier(DType t) {
    switch (itemsize(t)) {
        case 1: return copy<1>;
        case 2: return copy<2>;
        case 4: return copy<4>;
        case 8: return copy<8>;
        default: return copy<16>;
    }
}
Combine adder(const char* op, DType t) {
    switch (t) {
        case DType::Bool: return add<bool>;
        case DType::UInt8: return add<uint8_t>;
        case DType::Int8: return add<int8_t>;
        case DType::Int16: return add<int16_t>;
        case DType::Int32: return add<int32_t>;
        case DType::Int64: return add<int64_t>;
        case DType::UInt16: return add<uint16_t>;
        case DType::UInt32: return add<uint32_t>;
        case DType::UInt64: return add<uint64_t>;
        case DType::Float16: return add<Half>;
        case DType::BFloat16: return add<BFloat16>;
        case DType::Float32:
            return [](char* to, const char* from, int64_t n) {
                cpu::place_kernels().add_f32(reinterpret_cast<float*>(to),
                                             reinterpret_cast<const float*>(from), n);
            };
        case DType::Float64:
            return [](char* to, const char* from, int64_t n) {
                cpu::place_kernels().add_f64(reinterpret_cast<double*>(to),
                                             reinterpret_cast<const double*>(from), n);
            };
        case DType::Complex64: return add<Complex<float>>;
        case DType::Complex128: return add<Complex<double>>;
        default: throw_not_implemented("%s: dtype %s cannot be accumulated yet", op, name(t));
    }
}

// What `indices` select of a tensor: offsets of the indexed dimensions, and how the others are walked.
struct Selection {
    std::vector<int64_t> shape;    // of the result
    Odometer before, after;        // dimensions in front of and behind the indexed ones
    std::vector<int64_t> offsets;  // of the joint index, in elements
    int64_t run;                   // elements side by side at the end

    /// `from_the_end`: whether negative indices count from there.
    Selection(const char* op, IntList sizes, IntList strides, TensorList given, bool from_the_end = true) {
        std::vector<Tensor> indices = expand_masks(op, sizes, given);
        std::vector<int> dims;
        for (size_t d = 0; d < indices.size(); ++d)
            if (indices[d].defined()) dims.push_back(static_cast<int>(d));
        std::vector<int64_t> joint;
        for (int d : dims) joint = joined(op, joint, indices[d].sizes());

        bool adjacent = dims.empty() || dims.back() - dims.front() + 1 == static_cast<int>(dims.size());
        int split = adjacent && !dims.empty() ? dims.front() : 0;
        auto indexed = [&](size_t d) { return d < indices.size() && indices[d].defined(); };
        for (int d = 0; d < split; ++d) {
            shape.push_back(sizes[d]);
            before.push(sizes[d], strides[d]);
        }
        shape.insert(shape.end(), joint.begin(), joint.end());
        for (size_t d = static_cast<size_t>(split); d < sizes.size(); ++d) {
            if (indexed(d)) continue;
            shape.push_back(sizes[d]);
            after.push(sizes[d], strides[d]);
        }
        run = after.take_run();
        RL_CHECK(shape.size() <= kMaxDims, throw_index, "%s: the result would have %zu dimensions", op,
                 shape.size());

        int64_t count = 1;
        for (int64_t n : joint) count *= n;
        offsets.assign(static_cast<size_t>(count), 0);
        for (int d : dims) {
            Tensor full = make_tensor(joint, DType::Int64);
            copy_into(full, indices[d]);
            const int64_t* values = full.data<int64_t>();
            const int64_t size = sizes[d], least = from_the_end ? -size : 0;
            for (int64_t i = 0; i < count; ++i) {
                int64_t v = values[i];
                RL_CHECK(v >= least && v < size, throw_index,
                         "%s: index %lld is out of range for dimension %d of size %lld", op, (long long)v, d,
                         (long long)size);
                offsets[static_cast<size_t>(i)] += (v < 0 ? v + size : v) * strides[d];
            }
        }
    }

    // Broadcasting, whose failure is an IndexError here.
    static std::vector<int64_t> joined(const char* op, IntList a, IntList b) {
        const size_t n = std::min(a.size(), b.size());
        for (size_t i = 1; i <= n; ++i) {
            const int64_t x = a[a.size() - i], y = b[b.size() - i];
            RL_CHECK(x == y || x == 1 || y == 1, throw_index,
                     "%s(indices): the shapes %s and %s of indices do not broadcast", op,
                     to_string(a).c_str(), to_string(b).c_str());
        }
        return broadcast_shapes(op, "indices", a, "indices", b);
    }

    // A bool mask of k dimensions stands for k index tensors.
    static std::vector<Tensor> expand_masks(const char* op, IntList sizes, TensorList given) {
        std::vector<Tensor> indices;
        for (const Tensor& t : given) {
            if (!t.defined()) {
                indices.emplace_back();
            } else if (t.dtype() == DType::Bool || (t.dtype() == DType::UInt8 && t.dim() > 0)) {
                // Bytes are masks, as bools are.
                for (int64_t k = 0; k < t.dim(); ++k) {
                    size_t d = indices.size() + static_cast<size_t>(k);
                    // A size of 0, which chooses nothing, fits every dimension: so the array API standard has it.
                    RL_CHECK(
                        d < sizes.size() && (sizes[d] == t.sizes()[k] || t.sizes()[k] == 0), throw_index,
                        "%s: a mask of shape %s does not fit the indexed tensor of shape %s at dimension %zu",
                        op, to_string(t.sizes()).c_str(), to_string(sizes).c_str(), d);
                }
                Tensor found = nonzero(t);
                for (int64_t k = 0; k < t.dim(); ++k)
                    indices.push_back(take_view(found, views::select(found, 1, k)));
            } else {
                RL_CHECK(is_integral(t.dtype()), throw_index,
                         "%s: tensors used as indices must be integer or bool, got %s", op, name(t.dtype()));
                require_cpu(op, t);
                indices.push_back(t);
            }
        }
        RL_CHECK(indices.size() <= sizes.size(), throw_index, "%s: %zu indices for a tensor of shape %s", op,
                 indices.size(), to_string(sizes).c_str());
        return indices;
    }

    int64_t rows() const { return before.count * static_cast<int64_t>(offsets.size()) * after.count; }

    // body(offset in the indexed tensor, offset in a contiguous tensor of `shape`), for each run.
    template <class F>
    void for_each(int64_t begin, int64_t end, F&& body) const {
        auto joint = static_cast<int64_t>(offsets.size());
        for (int64_t row = begin; row < end; ++row) {
            int64_t tail = row % after.count, rest = row / after.count;
            int64_t place =
                before.offset(rest / joint) + offsets[static_cast<size_t>(rest % joint)] + after.offset(tail);
            body(place, row * run);
        }
    }
};

int64_t grain(int64_t run) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(run, 1)); }

// Before anything is counted or written.
void check_values(const char* op, const Selection& s, const Tensor& values) {
    require_cpu(op, values);
    IntList given = values.sizes();
    while (given.size() > s.shape.size() && given.front() == 1) given = given.subspan(1);
    RL_CHECK(broadcast_shapes(op, "input[indices]", s.shape, "values", given) == s.shape, throw_runtime,
             "%s(values): shape %s does not broadcast to the indexed shape %s", op,
             to_string(values.sizes()).c_str(), to_string(s.shape).c_str());
}

void write_selected(const char* op, const Tensor& target, const Selection& s, const Tensor& values,
                    bool accumulate) {
    int64_t count = 1;
    for (int64_t n : s.shape) count *= n;
    if (count == 0) return;
    Tensor full = values;
    if (values.shape() != s.shape || !values.is_contiguous() || values.dtype() != target.dtype() ||
        values.impl()->storage() == target.impl()->storage()) {
        full = make_tensor(s.shape, target.dtype());
        copy_into(full, values);
    }
    auto size = static_cast<int64_t>(itemsize(target.dtype()));
    char* to = target.data<char>();
    const char* from = full.data<char>();
    Combine combine = accumulate ? adder(op, target.dtype()) : copier(target.dtype());
    if (s.run == 1 && s.after.count == 1 && accumulate && target.dtype() == DType::Float32) {
        // Single elements: no call for each.
        const auto joint = static_cast<int64_t>(s.offsets.size());
        float* place = target.data<float>();
        const float* value = full.data<float>();
        for (int64_t b = 0; b < s.before.count; ++b, value += joint) {
            float* base = place + s.before.offset(b);
            for (int64_t i = 0; i < joint; ++i) base[s.offsets[static_cast<size_t>(i)]] += value[i];
        }
        return;
    }
    // In order: repeated indices give the same sum, or the last value, every time. Threads take parts of every run.
    parallel_for(0, s.run, grain(s.rows()), [&](int64_t begin, int64_t end) {
        s.for_each(0, s.rows(), [&](int64_t place, int64_t at) {
            combine(to + (place + begin) * size, from + (at + begin) * size, end - begin);
        });
    });
}

Tensor read_selected(const Tensor& input, const Selection& s) {
    Tensor out = make_tensor(s.shape, input.dtype());
    if (out.numel() == 0) return out;
    auto size = static_cast<int64_t>(itemsize(input.dtype()));
    const char* from = input.data<char>();
    char* to = out.data<char>();
    if (s.run == 1 && s.after.count == 1) {
        const auto joint = static_cast<int64_t>(s.offsets.size());
        const auto read = cpu::place_kernels().read;
        auto part = [&](int64_t b, int64_t first, int64_t last) {
            read(to + (b * joint + first) * size, from + s.before.offset(b) * size, static_cast<size_t>(size),
                 s.offsets.data() + first, last - first, 1, 0);
        };
        if (s.before.count == 1)
            parallel_for(0, joint, grain(1), [&](int64_t first, int64_t last) { part(0, first, last); });
        else
            parallel_for(0, s.before.count, grain(joint), [&](int64_t begin, int64_t end) {
                for (int64_t b = begin; b < end; ++b) part(b, 0, joint);
            });
        return out;
    }
    Combine copy_run = copier(input.dtype());
    parallel_for(0, s.rows(), grain(s.run), [&](int64_t begin, int64_t end) {
        s.for_each(begin, end,
                   [&](int64_t place, int64_t at) { copy_run(to + at * size, from + place * size, s.run); });
    });
    return out;
}

// One index for slices along `dim`; a 0-d tensor is seen as one of a single element.
struct Slices {
    Tensor tensor;
    std::vector<Tensor> indices;

    Slices(const Tensor& input, int dim, const Tensor& index_) : tensor(raised(input)) {
        indices.resize(static_cast<size_t>(dim) + 1);
        indices[static_cast<size_t>(dim)] = raised(index_);
    }
    static Tensor raised(const Tensor& t) { return t.dim() ? t : take_view(t, views::unsqueeze(t, 0)); }
};

}  // namespace

Tensor index(const Tensor& input, TensorList indices) {
    require_cpu("index", input);
    if (indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool &&
        indices[0].dim() > 0 && indices[0].shape() == input.shape() &&
        indices[0].device().type == DeviceType::CPU)
        return chosen_elements(input, indices[0]);
    return read_selected(input, Selection("index", input.sizes(), input.strides(), indices));
}

Tensor index_backward(const Tensor& grad, IntList input_sizes, TensorList indices) {
    Tensor out = make_tensor(input_sizes, grad.dtype(), grad.device());
    fill_with(out, Scalar(0));
    const Selection chosen("index", out.sizes(), out.strides(), indices);
    require_cpu("index", grad);
    RL_CHECK(std::ranges::equal(grad.sizes(), chosen.shape), throw_runtime,
             "index_backward(grad): needs the indexed shape %s, got %s", to_string(chosen.shape).c_str(),
             to_string(grad.sizes()).c_str());
    write_selected("index", out, chosen, grad, true);
    return out;
}

Tensor index_put_(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    require_cpu("index_put_", input);
    RL_CHECK(values.dtype() == input.dtype() || values.dim() == 0 || can_cast(values.dtype(), input.dtype()),
             throw_runtime, "index_put_(values): dtype %s cannot be written to %s", name(values.dtype()),
             name(input.dtype()));
    check_writable("index_put_", input);
    const Selection chosen("index_put_", input.sizes(), input.strides(), indices);
    check_values("index_put_", chosen, values);
    begin_write("index_put_", input);
    write_selected("index_put_", input, chosen, values, accumulate);
    return input;
}

std::vector<Tensor> nonzero_as_tuple(const Tensor& input, bool as_tuple) {
    RL_CHECK(as_tuple, throw_value, "nonzero(as_tuple=False): leave as_tuple out for one tensor of indices");
    if (input.dim() == 0) return nonzero_as_tuple(take_view(input, views::unsqueeze(input, 0)), true);
    Tensor found = nonzero(input);
    std::vector<Tensor> columns;
    for (int64_t d = 0; d < input.dim(); ++d) columns.push_back(take_view(found, views::select(found, 1, d)));
    return columns;
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index_) {
    RL_CHECK(index_.dim() <= 1, throw_index, "index_select(index): must have one dimension, got shape %s",
             to_string(index_.sizes()).c_str());
    RL_CHECK(index_.dtype() == DType::Int64 || index_.dtype() == DType::Int32, throw_runtime,
             "index_select(index): must be int32 or int64, got %s", name(index_.dtype()));
    int d = wrap_dim("index_select", dim, input.dim());
    RL_CHECK(input.dim() > 0 || index_.numel() == 1, throw_runtime,
             "index_select(index): a 0-d input has one element to select, got %lld indices",
             (long long)index_.numel());
    require_cpu("index_select", input);
    const Slices slices(input, d, index_);
    const Tensor chosen = read_selected(
        slices.tensor,
        Selection("index_select", slices.tensor.sizes(), slices.tensor.strides(), slices.indices, false));
    if (input.dim() > 0) return chosen;
    Tensor out = make_tensor({}, input.dtype());
    copy_into(out, take_view(chosen, views::select(chosen, 0, 0)));
    return out;
}

Tensor index_add_(const Tensor& input, int64_t dim, const Tensor& index_, const Tensor& source,
                  Scalar alpha) {
    int d = wrap_dim("index_add_", dim, input.dim());
    RL_CHECK(index_.dtype() == DType::Int64 || index_.dtype() == DType::Int32, throw_runtime,
             "index_add_(index): must be int32 or int64, got %s", name(index_.dtype()));
    RL_CHECK(
        category(alpha.dtype()) <= std::max(category(input.dtype()), DTypeCategory::Integral), throw_runtime,
        "index_add_(alpha): a %s number does not fit a tensor of dtype %s\nhint: convert the tensors first",
        name(alpha.dtype()), name(input.dtype()));
    RL_CHECK(index_.dim() <= 1, throw_index, "index_add_(index): must have one dimension, got shape %s",
             to_string(index_.sizes()).c_str());
    RL_CHECK(source.dtype() == input.dtype(), throw_runtime,
             "index_add_(source): must have input's dtype %s, got %s", name(input.dtype()),
             name(source.dtype()));
    bool fits = source.dim() == input.dim() && (input.dim() > 0 || index_.numel() == 1);
    for (int64_t k = 0; fits && k < input.dim(); ++k)
        fits = source.sizes()[k] == (k == d ? index_.numel() : input.sizes()[k]);
    RL_CHECK(fits, throw_runtime,
             "index_add_(source): shape %s does not fit input %s and %lld indices along dim %d",
             to_string(source.sizes()).c_str(), to_string(input.sizes()).c_str(), (long long)index_.numel(),
             d);
    check_writable("index_add_", input);
    const Slices slices(input, d, index_);
    Tensor scaled = Slices::raised(source);
    if (!alpha.equals(1)) {
        StagesOff stages(kAllStages);
        scaled = ops::mul(scaled, alpha);
    }
    const Selection chosen("index_add_", slices.tensor.sizes(), slices.tensor.strides(), slices.indices,
                           false);
    check_values("index_add_", chosen, scaled);
    begin_write("index_add_", input);
    write_selected("index_add_", input, chosen, scaled, true);
    return input;
}

}  // namespace rushlight::direct
