#include "ops/pointwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/cast.h"
#include "cpu/contiguous.h"
#include "cpu/pointwise_driver.h"
#include "ops/forms.h"
#include "ops/params.h"
#include "rushlight/backend.h"
#include "rushlight/parallel.h"

namespace rushlight {
namespace {

using cpu::PointwisePlan;

// --- dtypes -------------------------------------------------------------------------------------------------------

// What an operand says about the result: its dtype, and how loudly (2: has dimensions, 1: 0-d tensor, 0: number).
DType category_default(Scalar s) {
    return s.is_floating() ? default_dtype() : s.is_complex() ? complex_dtype(default_dtype()) : s.dtype();
}

struct Promotion {
    DType dtype[3];
    bool seen[3] = {false, false, false};

    void add(int loudness, DType t) {
        dtype[loudness] = seen[loudness] ? promote(dtype[loudness], t) : t;
        seen[loudness] = true;
    }
    void add(const TensorOrScalar& v) {
        if (!v.is_tensor()) add(0, category_default(v.scalar()));
        else add(v.tensor().dim() > 0 ? 2 : 1, v.tensor().dtype());
    }
    DType result() const {
        DType t = DType::Bool;
        bool any = false;
        for (int loudness = 2; loudness >= 0; --loudness) {
            if (!seen[loudness]) continue;
            if (!any) t = dtype[loudness];
            else if (category(dtype[loudness]) > category(t)) {
                // A quieter operand of a higher category decides the category; a number gives its default dtype.
                // Complex numbers of a quieter operand take the precision of floats that have dimensions.
                t = is_complex(dtype[loudness]) && is_floating(t) ? complex_dtype(t)
                                                                  : promote(t, dtype[loudness]);
            }
            any = true;
        }
        return t;
    }
};

void check_params(const PointwiseDesc& desc, const Scalar* params, DType compute) {
    for (int i = 0; i < desc.num_params; ++i) {
        if (!(desc.castable_params >> i & 1)) continue;
        bool fits = category(params[i].dtype()) <= std::max(category(compute), DTypeCategory::Integral);
        RL_CHECK(
            fits, throw_runtime,
            "%s: a %s parameter does not fit operands of dtype %s\nhint: convert the operands to a floating dtype first",
            desc.name, name(params[i].dtype()), name(compute));
    }
}

[[noreturn, gnu::cold]] void no_loop(const PointwiseDesc& desc, DType compute) {
    throw_not_implemented("%s: not defined for dtype %s", desc.name, name(compute));
}

DType result_of(const PointwiseDesc& desc, DType dtype) {
    switch (desc.result) {
        case PointwiseDesc::Result::Bool: return DType::Bool;
        case PointwiseDesc::Result::Real: return real_dtype(dtype);
        default: return dtype;
    }
}

// Where a number of Python lives while the loop reads it.
union Cell {
    bool b;
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
    Complex<float> c64;
    Complex<double> c128;
};
void store(Cell& cell, Scalar v, DType t) {
    switch (t) {
        case DType::Bool: cell.b = v.to<bool>(); break;
        case DType::UInt8: cell.u8 = static_cast<uint8_t>(v.to<int64_t>()); break;
        case DType::Int8: cell.i8 = static_cast<int8_t>(v.to<int64_t>()); break;
        case DType::Int16: cell.i16 = static_cast<int16_t>(v.to<int64_t>()); break;
        case DType::Int32: cell.i32 = static_cast<int32_t>(v.to<int64_t>()); break;
        case DType::Int64: cell.i64 = v.to<int64_t>(); break;
        case DType::UInt16: cell.u16 = static_cast<uint16_t>(v.to<int64_t>()); break;
        case DType::UInt32: cell.u32 = static_cast<uint32_t>(v.to<int64_t>()); break;
        case DType::UInt64: cell.u64 = static_cast<uint64_t>(v.to<int64_t>()); break;
        case DType::Float32: cell.f32 = v.to<float>(); break;
        case DType::Complex64: cell.c64 = v.to<Complex<float>>(); break;
        case DType::Complex128: cell.c128 = v.to<Complex<double>>(); break;
        default: cell.f64 = v.to<double>(); break;
    }
}

// Whether an integer lies in the range of an integer dtype; anything else fits.
bool fits(Scalar v, DType t) {
    if (v.is_floating() || v.is_complex()) return true;
    int64_t n = v.to<int64_t>();
    switch (t) {
        case DType::UInt8: return n == static_cast<uint8_t>(n);
        case DType::Int8: return n == static_cast<int8_t>(n);
        case DType::Int16: return n == static_cast<int16_t>(n);
        case DType::Int32: return n == static_cast<int32_t>(n);
        case DType::UInt16: return n == static_cast<uint16_t>(n);
        case DType::UInt32: return n == static_cast<uint32_t>(n);
        case DType::UInt64: return n >= 0;
        default: return true;
    }
}

// --- the fast path ------------------------------------------------------------------------------------------------

// All tensors contiguous on the CPU, of one shape and one dtype that is its own compute dtype; numbers of no higher
// category. Nothing needs to be worked out then.
struct Fast {
    const Tensor* shape = nullptr;
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands];
    Cell cells[kMaxOperands];
    LoopFn loop;
    DType result;

    bool build(const PointwiseDesc& desc, const TensorOrScalar* in) {
        const TensorImpl* first = nullptr;  // gives the shape
        const TensorImpl* typed = nullptr;  // gives the dtype
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (!in[i].is_tensor()) continue;
            const TensorImpl* t = in[i].tensor().impl();
            if (!t->contiguous() || t->device_type() != DeviceType::CPU) return false;
            if (!first) {
                first = t;
                shape = &in[i].tensor();
            } else if (t->ndim() != first->ndim() || std::memcmp(t->sizes().data(), first->sizes().data(),
                                                                 sizeof(int64_t) * t->ndim()) != 0) {
                return false;
            }
            if (desc.bool_inputs >> i & 1) {
                if (t->dtype() != DType::Bool) return false;
            } else if (!typed) {
                typed = t;
            } else if (t->dtype() != typed->dtype()) {
                return false;
            }
        }
        if (!typed) return false;
        DType dtype = typed->dtype();
        if (compute_dtype(dtype) != dtype ||
            (desc.compute == PointwiseDesc::Compute::CommonFloat && !is_differentiable(dtype)))
            return false;
        loop = desc.loops().loop[static_cast<int>(dtype)];
        if (!loop) return false;
        result = result_of(desc, dtype);
        const auto size = static_cast<int64_t>(itemsize(dtype));
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (in[i].is_tensor()) {
                data[1 + i] = static_cast<char*>(in[i].tensor().impl()->data());
                strides[1 + i] = desc.bool_inputs >> i & 1 ? 1 : size;
            } else {
                Scalar s = in[i].scalar();
                if (category(s.dtype()) > category(dtype) || !(desc.wraps || fits(s, dtype))) return false;
                store(cells[i], s, dtype);
                data[1 + i] = reinterpret_cast<char*>(&cells[i]);
                strides[1 + i] = 0;
            }
        }
        return true;
    }

    void run(const PointwiseDesc& desc, const Scalar* params, const Tensor& out) {
        data[0] = static_cast<char*>(out.impl()->data());
        strides[0] = static_cast<int64_t>(itemsize(result));
        int64_t n = out.numel();
        if (n <= cpu::kGrain) {
            if (n) loop(data, strides, n, params);
            return;
        }
        parallel_for(0, n, cpu::kGrain, [&](int64_t begin, int64_t end) {
            char* here[kMaxOperands];
            for (int i = 0; i <= desc.num_inputs; ++i) here[i] = data[i] + begin * strides[i];
            loop(here, strides, end - begin, params);
        });
    }
};

// --- the general path ---------------------------------------------------------------------------------------------

// A 0-d tensor on the CPU goes with tensors of any device, as a number does.
bool is_number_like(const Tensor& t) { return t.dim() == 0 && t.device().type == DeviceType::CPU; }

}  // namespace

Scalar value_of(const Tensor& t) {
    const bool integer = is_integral(t.dtype(), true), complex = is_complex(t.dtype());
    Tensor wide = make_tensor({}, integer ? DType::Int64 : complex ? DType::Complex128 : DType::Float64);
    copy_into(wide, t);
    if (complex) return Scalar(*wide.data<Complex<double>>());
    if (wide.dtype() == DType::Float64) return Scalar(*wide.data<double>());
    return t.dtype() == DType::Bool ? Scalar(*wide.data<int64_t>() != 0) : Scalar(*wide.data<int64_t>());
}

Scalar element_of(const char* op, const char* argument, Scalar value, DType t) {
    const auto fail = [&] [[noreturn, gnu::cold]] {
        const auto z = value.to<Complex<double>>();
        if (value.is_complex())
            throw_runtime("%s(%s): %g%+gj does not fit dtype %s", op, argument, z.re, z.im, name(t));
        throw_runtime("%s(%s): %.17g does not fit dtype %s", op, argument, z.re, name(t));
    };
    if (is_complex(t)) return value;
    if (t == DType::Bool) return Scalar(value.to<bool>());
    if (value.is_complex()) {
        const auto z = value.to<Complex<double>>();
        if (z.im != 0) fail();
        value = Scalar(z.re);
    }
    if (is_floating(t)) {
        const double most = t == DType::Float16    ? 65504
                            : t == DType::BFloat16 ? 0x1.fep127
                            : t == DType::Float32  ? double{std::numeric_limits<float>::max()}
                                                   : std::numeric_limits<double>::max();
        const double v = value.to<double>();
        if (std::fabs(v) > most && !std::isinf(v)) fail();
        return value;
    }
    const int bits = static_cast<int>(8 * itemsize(t));
    const bool is_unsigned =
        t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64;
    if (value.is_floating()) {
        const double v = value.to<double>(),
                     past = std::ldexp(1.0, std::min(is_unsigned ? bits : bits - 1, 63));
        if (!(v >= (is_unsigned ? 0 : -past) && (bits == 64 ? v < past : v <= past - 1))) fail();
        value = Scalar(static_cast<int64_t>(v));
    }
    const int64_t n = value.to<int64_t>();
    if (fits(value, t) || t == DType::UInt64) return Scalar(n);
    if (!is_unsigned || n < -((int64_t{1} << bits) - 1) || n >= 0) fail();
    return Scalar(n & ((int64_t{1} << bits) - 1));
}

namespace {

struct General {
    const PointwiseDesc& desc;
    const TensorOrScalar* in;
    DType common = DType::Bool, compute = DType::Bool, result = DType::Bool;
    int ndim = 0;
    int64_t sizes[kMaxDims];
    Device device{};
    bool placed = false;

    General(const PointwiseDesc& d, const TensorOrScalar* inputs, const Scalar* params)
        : desc(d), in(inputs) {
        Promotion promotion;
        bool tensors = false;
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (desc.bool_inputs >> i & 1) {
                const DType dtype = in[i].tensor().dtype();
                RL_CHECK(dtype == DType::Bool || dtype == DType::UInt8, throw_runtime,
                         "%s(%s): needs a bool tensor, got %s", desc.name, desc.arg_names[i],
                         name(in[i].tensor().dtype()));
            } else {
                promotion.add(in[i]);
            }
            if (in[i].is_tensor()) {
                join(i, in[i].tensor());
                tensors = true;
            }
        }
        RL_CHECK(tensors, throw_type, "%s: at least one argument must be a Tensor", desc.name);
        common = promotion.result();
        if (desc.compute == PointwiseDesc::Compute::CommonFloat && !is_differentiable(common))
            common = default_dtype();
        if (desc.compute == PointwiseDesc::Compute::CommonNumber && common == DType::Bool)
            common = DType::Int64;
        if (!desc.wraps) widen();
        compute = compute_dtype(common);
        result = result_of(desc, common);
        if (!desc.loops().loop[static_cast<int>(compute)]) no_loop(desc, common);
        check_params(desc, params, common);
    }

    // A number beyond the range of its fellow operands can be compared with them, but is no value of theirs.
    void widen() {
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (in[i].is_tensor() || fits(in[i].scalar(), common)) continue;
            RL_CHECK(desc.result == PointwiseDesc::Result::Bool && common != DType::UInt64, throw_runtime,
                     "%s(%s): %lld does not fit dtype %s", desc.name, desc.arg_names[i],
                     (long long)in[i].scalar().to<int64_t>(), name(common));
            common = DType::Int64;
        }
    }

    // Broadcasts one more operand into the shape; all tensors must be on one device, but for 0-d ones on the CPU.
    void join(int i, const Tensor& t) {
        if (!is_number_like(t)) {
            RL_CHECK(!placed || t.device() == device, throw_runtime,
                     "%s(%s): all tensors must be on one device, found %s and %s", desc.name,
                     desc.arg_names[i], rushlight::name(device).c_str(), rushlight::name(t.device()).c_str());
            device = t.device();
            placed = true;
        }
        int n = static_cast<int>(t.dim());
        int joint = std::max(n, ndim);
        int64_t grown[kMaxDims];
        for (int d = 0; d < joint; ++d) {
            int64_t a = d < joint - ndim ? 1 : sizes[d - (joint - ndim)];
            int64_t b = d < joint - n ? 1 : t.sizes()[d - (joint - n)];
            if (a != b && a != 1 && b != 1) fail(i, t, d, a, b);
            grown[d] = a == 1 ? b : a;
        }
        std::memcpy(sizes, grown, sizeof(int64_t) * joint);
        ndim = joint;
    }
    [[noreturn, gnu::cold]] void fail(int i, const Tensor& t, int d, int64_t a, int64_t b) {
        std::string names = desc.arg_names[0];
        for (int k = 1; k < desc.num_inputs; ++k) names += std::string(", ") + desc.arg_names[k];
        IntList so_far(sizes, static_cast<size_t>(ndim));
        const Tensor* only = nullptr;
        for (int k = 0; k < i; ++k)
            if (in[k].is_tensor()) only = only ? nullptr : &in[k].tensor();
        if (only) so_far = only->sizes();
        throw_runtime(
            "%s(%s): shapes %s and %s do not broadcast: dimension %d is %lld against %lld\n"
            "hint: sizes are compared from the last dimension; they must be equal or one of them 1",
            desc.name, names.c_str(), to_string(so_far).c_str(), to_string(t.sizes()).c_str(), d,
            (long long)a, (long long)b);
    }

    // The result walks memory in the order of the inputs: channels-last in, channels-last out.
    Tensor allocate() const {
        IntList shape(sizes, static_cast<size_t>(ndim));
        const Tensor* model = nullptr;
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (!in[i].is_tensor() || in[i].tensor().dim() < ndim) continue;
            if (!std::equal(shape.begin(), shape.end(), in[i].tensor().sizes().begin())) continue;
            if (!model) model = &in[i].tensor();
        }
        if (!model || model->is_contiguous()) return make_tensor(shape, result, device);
        if (model->impl()->has(Flag::Dense)) return make_like(*model, result);
        int order[kMaxDims];  // dimensions, the largest stride first; ties keep their order
        for (int d = 0; d < ndim; ++d) {
            int k = d;
            for (; k > 0 && model->strides()[order[k - 1]] < model->strides()[d]; --k)
                order[k] = order[k - 1];
            order[k] = d;
        }
        int64_t strides[kMaxDims], step = 1;
        for (int k = ndim - 1; k >= 0; --k) {
            strides[order[k]] = step;
            step *= std::max<int64_t>(sizes[order[k]], 1);
        }
        return make_strided(shape, IntList(strides, static_cast<size_t>(ndim)), result, device);
    }

    void run(const Scalar* params, const Tensor& out) const {
        if (out.numel() == 0 || device.type == DeviceType::Meta) return;
        if (device.type != DeviceType::CPU) return run_on_device(params, out);
        PointwisePlan plan;
        Tensor copies[kMaxOperands];
        Cell cells[kMaxOperands];
        plan.ndim = ndim;
        plan.num_operands = 1 + desc.num_inputs;
        plan.loop = desc.loops().loop[static_cast<int>(compute)];
        plan.params = params;
        std::memcpy(plan.sizes, sizes, sizeof(int64_t) * ndim);
        set_operand(plan, 0, out, result_of(desc, compute));
        for (int i = 0; i < desc.num_inputs; ++i) {
            DType loop_dtype = desc.bool_inputs >> i & 1 ? DType::Bool : compute;
            if (in[i].is_tensor()) {
                set_operand(plan, 1 + i, separate(in[i].tensor(), out, copies[i]), loop_dtype);
            } else {
                store(cells[i], in[i].scalar(), loop_dtype);
                plan.data[1 + i] = reinterpret_cast<char*>(&cells[i]);
                plan.dtype[1 + i] = plan.loop_dtype[1 + i] = loop_dtype;
                std::fill_n(plan.strides[1 + i], ndim, 0);
            }
        }
        sort_dimensions(plan);
        cpu::coalesce(plan);
        cpu::run(plan);
    }

    // An input that shares memory with the output, but not element for element, is read from a copy.
    static const Tensor& separate(const Tensor& t, const Tensor& out, Tensor& copy);

    void set_operand(PointwisePlan& plan, int i, const Tensor& t, DType loop_dtype) const {
        plan.data[i] = static_cast<char*>(t.impl()->data());
        plan.dtype[i] = t.dtype();
        plan.loop_dtype[i] = loop_dtype;
        int lead = ndim - static_cast<int>(t.dim());
        auto size = static_cast<int64_t>(itemsize(t.dtype()));
        for (int d = 0; d < ndim; ++d)
            plan.strides[i][d] = d < lead || t.sizes()[d - lead] == 1 ? 0 : t.strides()[d - lead] * size;
    }

    // The output's smallest stride goes innermost, so that memory is written in order.
    static void sort_dimensions(PointwisePlan& plan) {
        for (int d = 1; d < plan.ndim; ++d)
            for (int k = d; k > 0 && plan.strides[0][k - 1] < plan.strides[0][k]; --k) {
                std::swap(plan.sizes[k - 1], plan.sizes[k]);
                for (int i = 0; i < plan.num_operands; ++i)
                    std::swap(plan.strides[i][k - 1], plan.strides[i][k]);
            }
    }

    void run_on_device(const Scalar* params, const Tensor& out) const {
        KernelFn kernel = desc.kernels->device[static_cast<int>(device.type)].load(std::memory_order_acquire);
        RL_CHECK(kernel, throw_not_implemented, "%s: no kernel for device %s", desc.name,
                 rushlight::name(device).c_str());
        View views[kMaxOperands];
        int64_t strides[kMaxOperands][kMaxDims];
        Param numbers[2 * kMaxOperands];
        int num_params = 0;
        for (int i = 0; i <= desc.num_inputs; ++i) {
            if (i > 0 && (!in[i - 1].is_tensor() || is_number_like(in[i - 1].tensor()))) {
                // A number stands among the parameters, before the operator's own; its view is absent.
                views[i] = View{nullptr, nullptr, nullptr, 0, -1, compute, 0};
                numbers[num_params++] = to_param(
                    desc.name, in[i - 1].is_tensor() ? value_of(in[i - 1].tensor()) : in[i - 1].scalar());
                continue;
            }
            const Tensor& t = i ? in[i - 1].tensor() : out;
            int lead = ndim - static_cast<int>(t.dim());
            for (int d = 0; d < ndim; ++d)
                strides[i][d] = d < lead || t.sizes()[d - lead] == 1 ? 0 : t.strides()[d - lead];
            views[i] = View{t.impl()->data(),
                            sizes,
                            strides[i],
                            out.numel(),
                            ndim,
                            t.dtype(),
                            t.is_contiguous() && lead == 0};
        }
        for (int i = 0; i < desc.num_params; ++i) numbers[num_params++] = to_param(desc.name, params[i]);
        backend_call(device, kernel,
                     KernelArgs{sizeof(KernelArgs), 1, desc.num_inputs, static_cast<uint16_t>(num_params),
                                views, numbers, nullptr});
    }
};

// Bytes [first, last) that a tensor can touch.
std::pair<const char*, const char*> reach(const Tensor& t) {
    auto* first = static_cast<const char*>(t.impl()->data());
    int64_t last = 1;
    for (int d = 0; d < t.dim(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
    return {first, first + last * static_cast<int64_t>(itemsize(t.dtype()))};
}
bool same_geometry(const Tensor& a, const Tensor& b) {
    return a.impl()->data() == b.impl()->data() && a.dtype() == b.dtype() &&
           std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end()) &&
           std::equal(a.strides().begin(), a.strides().end(), b.strides().begin());
}
bool overlaps(const Tensor& a, const Tensor& b) {
    if (a.impl()->storage() != b.impl()->storage() || a.numel() == 0 || b.numel() == 0 || same_geometry(a, b))
        return false;
    auto [a0, a1] = reach(a);
    auto [b0, b1] = reach(b);
    return a0 < b1 && b0 < a1;
}

const Tensor& General::separate(const Tensor& t, const Tensor& out, Tensor& copy) {
    if (!overlaps(t, out)) return t;
    copy = make_tensor(t.sizes(), t.dtype(), t.device());
    copy_into(copy, t);
    return copy;
}

}  // namespace

DType result_dtype(std::span<const TensorOrScalar> operands) {
    Promotion promotion;
    for (const TensorOrScalar& v : operands) promotion.add(v);
    return promotion.result();
}

std::vector<int64_t> broadcast_shapes(const char* op, const char* first_name, IntList first,
                                      const char* second_name, IntList second) {
    size_t n = std::max(first.size(), second.size());
    std::vector<int64_t> joint(n);
    for (size_t d = 0; d < n; ++d) {
        int64_t a = d < n - first.size() ? 1 : first[d - (n - first.size())];
        int64_t b = d < n - second.size() ? 1 : second[d - (n - second.size())];
        RL_CHECK(a == b || a == 1 || b == 1, throw_runtime,
                 "%s(%s, %s): shapes %s and %s do not broadcast: dimension %zu is %lld against %lld", op,
                 first_name, second_name, to_string(first).c_str(), to_string(second).c_str(), d,
                 (long long)a, (long long)b);
        joint[d] = a == 1 ? b : a;
    }
    return joint;
}

// Whether two elements lie at one place, which no dimension of stride 0 betrays: rows of a sliding window do.
static bool overlaps_itself(const Tensor& t) {
    int64_t sizes[kMaxDims], strides[kMaxDims], furthest = 0;
    int n = 0;
    bool nested = true;
    for (int d = 0; d < t.dim(); ++d) {
        if (t.sizes()[d] == 1) continue;
        int k = n++;
        for (; k > 0 && strides[k - 1] > t.strides()[d]; --k) {
            strides[k] = strides[k - 1];
            sizes[k] = sizes[k - 1];
        }
        strides[k] = t.strides()[d];
        sizes[k] = t.sizes()[d];
    }
    for (int k = 0; k < n; ++k) {
        nested &= strides[k] > furthest;  // steps over all that lies inside it
        furthest += (sizes[k] - 1) * strides[k];
    }
    if (nested || t.numel() == 0) return false;
    if (t.numel() > furthest + 1) return true;
    // Interleaved: each element's place is looked at.
    std::vector<bool> taken(static_cast<size_t>(furthest) + 1);
    int64_t index[kMaxDims] = {}, place = 0;
    while (true) {
        if (taken[static_cast<size_t>(place)]) return true;
        taken[static_cast<size_t>(place)] = true;
        int k = 0;
        for (; k < n && ++index[k] == sizes[k]; ++k) {
            place -= (sizes[k] - 1) * strides[k];
            index[k] = 0;
        }
        if (k == n) return false;
        place += strides[k];
    }
}

void check_writable(const char* op, const Tensor& t) {
    RL_CHECK(
        !t.impl()->storage()->read_only(), throw_runtime,
        "%s: this tensor is read-only, because the memory that it was made from is\nhint: clone() it first",
        op);
    if (t.impl()->has(Flag::Dense)) return;
    for (int d = 0; d < t.dim(); ++d)
        RL_CHECK(
            t.strides()[d] != 0 || t.sizes()[d] <= 1, throw_runtime,
            "%s: several elements of the written tensor share one memory location (dimension %d of shape %s has "
            "stride 0)\nhint: clone() the expanded tensor first",
            op, d, to_string(t.sizes()).c_str());
    RL_CHECK(
        !overlaps_itself(t), throw_runtime,
        "%s: several elements of the written tensor share one memory location (shape %s has strides %s)\n"
        "hint: clone() it first",
        op, to_string(t.sizes()).c_str(), to_string(t.strides()).c_str());
}

static bool has_shape(const Tensor& t, IntList sizes) {
    return std::equal(sizes.begin(), sizes.end(), t.sizes().begin(), t.sizes().end());
}

void check_out(const char* op, const Tensor& out, IntList sizes, DType result) {
    RL_CHECK(can_cast(result, out.dtype()), throw_runtime,
             "%s(out): a result of dtype %s cannot be cast to out's %s", op, name(result), name(out.dtype()));
    check_writable(op, out);
    RL_CHECK(has_shape(out, sizes) || !out.impl()->is_view() || out.numel() == 0, throw_runtime,
             "%s(out): a view of shape %s cannot be resized to %s", op, to_string(out.sizes()).c_str(),
             to_string(sizes).c_str());
}

void prepare_out(const char* op, const Tensor& out, IntList sizes, DType result) {
    check_out(op, out, sizes, result);
    if (has_shape(out, sizes)) return;
    const Tensor plan = make_tensor(sizes, out.dtype(), Device{DeviceType::Meta});
    Storage* storage = out.impl()->storage();
    // An empty view grows from where it begins.
    const int64_t offset = out.impl()->is_view() ? out.impl()->offset() : 0;
    const size_t bytes = static_cast<size_t>(offset + plan.numel()) * itemsize(out.dtype());
    if (plan.numel() > 0 && storage->nbytes() < bytes) storage->resize(bytes);
    out.impl()->assign(Ref<Storage>::share(storage), plan.sizes(), plan.strides(), offset, out.dtype());
}

Tensor pointwise(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params) {
    Fast fast;
    if (fast.build(desc, inputs)) [[likely]] {
        check_params(desc, params, fast.shape->dtype());
        Tensor out = make_like(*fast.shape, fast.result);
        fast.run(desc, params, out);
        return out;
    }
    General general(desc, inputs, params);
    Tensor out = general.allocate();
    general.run(params, out);
    return out;
}

static bool shares_memory(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Tensor& out) {
    return std::any_of(inputs, inputs + desc.num_inputs, [&](const TensorOrScalar& v) {
        return v.is_tensor() && v.tensor().impl()->storage() == out.impl()->storage();
    });
}

Tensor pointwise_into(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params,
                      const Tensor& out, Form form) {
    Fast fast;
    // In place with the first input as the output: aliasing is exact where the inputs are the output or elsewhere.
    if (form == Form::InPlace && fast.build(desc, inputs) && fast.result == out.dtype() &&
        inputs[0].is_tensor() && inputs[0].tensor().is_same(out)) {
        bool apart = true;
        for (int i = 1; i < desc.num_inputs; ++i)
            apart &= !inputs[i].is_tensor() || !overlaps(inputs[i].tensor(), out);
        if (apart) {
            check_params(desc, params, out.dtype());
            check_writable(desc.name, out);
            begin_write(desc.name, out);
            fast.run(desc, params, out);
            return out;
        }
    }
    General general(desc, inputs, params);
    IntList shape(general.sizes, static_cast<size_t>(general.ndim));
    if (form == Form::InPlace) {
        RL_CHECK(std::equal(shape.begin(), shape.end(), out.sizes().begin(), out.sizes().end()),
                 throw_runtime, "%s_: the written tensor has shape %s, but the operands broadcast to %s",
                 desc.name, to_string(out.sizes()).c_str(), to_string(shape).c_str());
        RL_CHECK(can_cast(general.result, out.dtype()), throw_runtime,
                 "%s_: a result of dtype %s cannot be written to a tensor of dtype %s", desc.name,
                 name(general.result), name(out.dtype()));
        check_writable(desc.name, out);
    } else {
        RL_CHECK(out.device() == general.device, throw_runtime,
                 "%s(out): out is on %s, the operands are on %s", desc.name, name(out.device()).c_str(),
                 name(general.device).c_str());
        if (!has_shape(out, shape) && shares_memory(desc, inputs, out)) {
            // Resizing would take the operands away.
            check_out(desc.name, out, shape, general.result);
            Tensor result = general.allocate();
            general.run(params, result);
            prepare_out(desc.name, out, shape, general.result);
            begin_write(desc.name, out);
            copy_into(out, result);
            return out;
        }
        prepare_out(desc.name, out, shape, general.result);
    }
    begin_write(desc.name, out);
    general.run(params, out);
    return out;
}

// Whether the elements of a row-major target lie side by side in the source, but not along its last dimension: then squares of
// them are transposed.
static bool is_transposed(const Tensor& target, const Tensor& source) {
    if (source.dim() < 2 || source.dtype() != target.dtype() || source.dim() != target.dim() ||
        !target.is_contiguous() || source.is_contiguous() || source.numel() != target.numel())
        return false;
    int64_t last = 0;
    bool elsewhere = false;
    for (int64_t d = source.dim() - 1; d >= 0; --d) {
        const int64_t stride = source.strides()[d];
        if (source.sizes()[d] == 1) continue;
        if (last == 0) last = stride;
        elsewhere |= stride == 1;
    }
    return last > 1 && elsewhere;
}

void copy_into(const Tensor& target, const Tensor& source) {
    if (target.numel() == 0 || target.device().type == DeviceType::Meta) return;
    if (target.device().type != DeviceType::CPU || source.device().type != DeviceType::CPU)
        return backend_copy(target, source);
    Tensor copy;
    const Tensor* from = &source;
    if (overlaps(source, target)) {
        copy = make_tensor(source.sizes(), source.dtype());
        copy_into(copy, source);
        from = &copy;
    }
    if (is_transposed(target, *from))
        return cpu::copy_kernels().copy_strided(target.impl()->data(), from->impl()->data(), from->dtype(),
                                                static_cast<int>(from->dim()), from->sizes().data(),
                                                from->strides().data());
    PointwisePlan plan;
    plan.ndim = static_cast<int>(target.dim());
    plan.num_operands = 2;
    plan.loop = cpu::cast_loop(target.dtype(), from->dtype());
    plan.params = nullptr;
    const Tensor* operand[2] = {&target, from};
    std::copy(target.sizes().begin(), target.sizes().end(), plan.sizes);
    for (int i = 0; i < 2; ++i) {
        const Tensor& t = *operand[i];
        plan.data[i] = static_cast<char*>(t.impl()->data());
        plan.dtype[i] = plan.loop_dtype[i] = t.dtype();
        int lead = plan.ndim - static_cast<int>(t.dim());
        auto size = static_cast<int64_t>(itemsize(t.dtype()));
        for (int d = 0; d < plan.ndim; ++d)
            plan.strides[i][d] = d < lead || t.sizes()[d - lead] == 1 ? 0 : t.strides()[d - lead] * size;
    }
    General::sort_dimensions(plan);
    cpu::coalesce(plan);
    cpu::run(plan);
}

}  // namespace rushlight
