#include "ops/pointwise.h"

#include <algorithm>
#include <cstring>

#include "cpu/pointwise_driver.h"
#include "ops/cell.h"
#include "ops/copying.h"
#include "ops/device_kernel.h"
#include "ops/memory_format.h"
#include "ops/numbers.h"
#include "ops/outputs.h"
#include "ops/params.h"
#include "rushlight/backend.h"
#include "rushlight/parallel.h"
#include "tensor/promotion.h"

namespace rushlight {
namespace {

using cpu::PointwisePlan;

void check_params(const PointwiseDesc& desc, const Scalar* params, DType compute) {
    for (int i = 0; i < desc.num_params; ++i) {
        if (!(desc.castable_params >> i & 1)) continue;
        const DTypeCategory own = category(params[i].dtype());
        RL_CHECK(own <= DTypeCategory::Integral || own <= category(compute), throw_runtime,
                 "%s: a parameter of dtype %s does not fit operands of dtype %s\n"
                 "hint: convert the operands to a floating dtype first",
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

View absent_view(DType dtype) { return {nullptr, nullptr, nullptr, 0, -1, dtype, 0}; }

// Numbers that replace tensor operands are the first parameters. The operator's own parameters follow them.
void call_pointwise_on_device(const PointwiseDesc& desc, Device device, DType compute, const View* views,
                              Numbers<2 * kMaxOperands>& numbers, const Scalar* params) {
    for (int i = 0; i < desc.num_params; ++i) numbers.add(params[i]);
    call_on_device(desc.name, device, *desc.kernels, KernelPart::Run,
                   {sizeof(KernelArgs), 1, desc.num_inputs, numbers.size(), compute, kNoDType, views,
                    numbers.params(), nullptr});
}

// --- the fast path ------------------------------------------------------------------------------------------------

// Handles calls whose tensors are contiguous and have one device, one shape and one dtype that is also the compute dtype.
// Numbers must not be of a higher category. No shapes or dtypes need to be computed then.
struct Fast {
    const Tensor* shape = nullptr;
    Device device;
    char* data[kMaxOperands];
    int64_t strides[kMaxOperands];
    Cell cells[kMaxOperands];
    LoopFn loop;
    DType dtype;  // compute dtype
    DType result;

    bool build(const PointwiseDesc& desc, const TensorOrScalar* in) {
        const TensorImpl* first = nullptr;  // gives the shape
        bool typed = false;  // whether the dtype is known
        bool numbers = false;
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (!in[i].is_tensor()) {
                numbers = true;
                continue;
            }
            const TensorImpl* t = in[i].tensor().impl();
            if (!t->contiguous()) return false;
            if (!first) {
                first = t;
                shape = &in[i].tensor();
                device = t->device();
            } else if (t->device() != device || !same_sizes(*t, *first)) {
                return false;
            }
            const DType own = t->dtype();
            if (desc.bool_inputs >> i & 1) {
                if (own != DType::Bool) return false;
            } else if (!typed) {
                typed = true;
                dtype = own;
            } else if (own != dtype) {
                return false;
            }
            data[1 + i] = static_cast<char*>(t->data());
            strides[1 + i] = static_cast<int64_t>(itemsize(own));
        }
        if (!typed) return false;
        if (compute_dtype(dtype) != dtype ||
            (desc.compute == PointwiseDesc::Compute::CommonFloat && !is_differentiable(dtype)))
            return false;
        loop = desc.loops().loop[static_cast<int>(dtype)];
        if (!loop) return false;
        result = result_of(desc, dtype);
        return !numbers || store_numbers(desc, in);
    }

    // Compares the sizes without a call of memcmp, which takes longer than the comparison of a few dimensions.
    static bool same_sizes(const TensorImpl& a, const TensorImpl& b) {
        if (a.ndim() != b.ndim()) return false;
        for (int d = 0; d < a.ndim(); ++d)
            if (a.size(d) != b.size(d)) return false;
        return true;
    }

    bool store_numbers(const PointwiseDesc& desc, const TensorOrScalar* in) {
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (in[i].is_tensor()) continue;
            Scalar s = in[i].scalar();
            if (category(s.dtype()) > category(dtype) || !(desc.wraps || fits_integer(s, dtype)))
                return false;
            store_number(cells[i], s, dtype);
            data[1 + i] = reinterpret_cast<char*>(&cells[i]);
            strides[1 + i] = 0;
        }
        return true;
    }

    void run(const PointwiseDesc& desc, const TensorOrScalar* in, const Scalar* params, const Tensor& out) {
        if (device.type != DeviceType::CPU) [[unlikely]]
            return run_on_device(desc, in, params, out);
        data[0] = static_cast<char*>(out.impl()->data());
        strides[0] = static_cast<int64_t>(itemsize(result));
        int64_t n = out.numel();
        if (n <= cpu::kGrain) {
            if (n) run_row(loop, data, strides, n, params);
            return;
        }
        parallel_for(0, n, cpu::kGrain, [&](int64_t begin, int64_t end) {
            char* here[kMaxOperands];
            for (int i = 0; i <= desc.num_inputs; ++i) here[i] = data[i] + begin * strides[i];
            run_row(loop, here, strides, end - begin, params);
        });
    }

    void run_on_device(const PointwiseDesc& desc, const TensorOrScalar* in, const Scalar* params,
                       const Tensor& out) const {
        if (device.type == DeviceType::Meta || out.numel() == 0) return;
        View views[kMaxOperands];
        Numbers<2 * kMaxOperands> numbers;
        record_current_use(*out.impl()->storage());
        const View shape = views[0] = out.impl()->view();  // all operands have this shape
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (in[i].is_tensor()) {
                record_current_use(*in[i].tensor().impl()->storage());
                const DType own = desc.bool_inputs >> i & 1 ? DType::Bool : dtype;
                views[1 + i] = {data[1 + i], shape.sizes, shape.strides, shape.numel, shape.ndim, own, 1};
            } else {
                views[1 + i] = absent_view(dtype);
                numbers.add(in[i].scalar());
            }
        }
        call_pointwise_on_device(desc, device, dtype, views, numbers, params);
    }
};

// --- the general path ---------------------------------------------------------------------------------------------

// A 0-d tensor on the CPU can be combined with tensors of any device, like a number.
bool is_number_like(const Tensor& t) { return t.dim() == 0 && t.device().type == DeviceType::CPU; }

}  // namespace

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

    // A number beyond the range of the other operands' dtype can be compared with them, but it cannot be converted to that
    // dtype.
    void widen() {
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (in[i].is_tensor() || fits_integer(in[i].scalar(), common)) continue;
            RL_CHECK(desc.result == PointwiseDesc::Result::Bool && common != DType::UInt64, throw_runtime,
                     "%s(%s): %lld does not fit dtype %s", desc.name, desc.arg_names[i],
                     (long long)in[i].scalar().to<int64_t>(), name(common));
            common = DType::Int64;
        }
    }

    // Broadcasts the shape with another operand. All tensors must be on one device, except 0-d tensors on the CPU.
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
            "%s(%s): shapes %s and %s do not broadcast: dimension %d has sizes %lld and %lld\n"
            "hint: sizes are compared from the last dimension, and must be equal unless one of the two is 1",
            desc.name, names.c_str(), to_string(so_far).c_str(), to_string(t.sizes()).c_str(), d,
            (long long)a, (long long)b);
    }

    // Computes the strides of an input for the dimensions of the result, in elements. The stride is 0 where the input is
    // broadcast.
    void broadcast_strides(const Tensor& t, int64_t* strides) const {
        const int lead = ndim - static_cast<int>(t.dim());
        for (int d = 0; d < ndim; ++d)
            strides[d] = d < lead || t.sizes()[d - lead] != sizes[d] ? 0 : t.strides()[d - lead];
    }

    bool spans(const Tensor& t) const {
        return t.dim() == ndim && std::equal(sizes, sizes + ndim, t.sizes().begin());
    }
    const Tensor& first_tensor() const {
        int i = 0;
        while (!in[i].is_tensor()) ++i;
        return in[i].tensor();
    }
    // Whether the result is row-major: all inputs up to the first that is not broadcast are row-major.
    bool is_row_major() const {
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (!in[i].is_tensor()) continue;
            if (!in[i].tensor().is_contiguous()) return false;
            if (spans(in[i].tensor())) return true;
        }
        return true;
    }

    // The dimensions of the result have the same order in memory as in the inputs. Channels-last inputs give a channels-last
    // result.
    Tensor allocate() const {
        IntList shape(sizes, static_cast<size_t>(ndim));
        if (is_row_major()) return make_tensor(shape, result, device);
        const Tensor& first = first_tensor();
        if (first.impl()->has(Flag::Dense) && spans(first)) return make_like(first, result);
        int64_t operands[kMaxOperands][kMaxDims], strides[kMaxDims];
        const int64_t* lists[kMaxOperands];
        int count = 0;
        for (int i = 0; i < desc.num_inputs; ++i) {
            if (!in[i].is_tensor()) continue;
            broadcast_strides(in[i].tensor(), operands[count]);
            lists[count] = operands[count];
            ++count;
        }
        strides_in_order(shape, lists, count, strides);
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
        // A few operators have loops over the bits of half types.
        const LoopFn of_bits = desc.loops().loop[static_cast<int>(common)];
        const DType loop_dtype = of_bits ? common : compute;
        plan.loop = desc.loops().loop[static_cast<int>(loop_dtype)];
        plan.params = params;
        plan.packs = true;
        std::memcpy(plan.sizes, sizes, sizeof(int64_t) * ndim);
        set_operand(plan, 0, out, result_of(desc, loop_dtype));
        for (int i = 0; i < desc.num_inputs; ++i) {
            DType own = desc.bool_inputs >> i & 1 ? DType::Bool : loop_dtype;
            if (in[i].is_tensor()) {
                set_operand(plan, 1 + i, separate(in[i].tensor(), out, copies[i]), own);
            } else {
                store_number(cells[i], in[i].scalar(), own);
                plan.data[1 + i] = reinterpret_cast<char*>(&cells[i]);
                plan.dtype[1 + i] = plan.loop_dtype[1 + i] = own;
                std::fill_n(plan.strides[1 + i], ndim, 0);
            }
        }
        cpu::sort_dimensions(plan);
        cpu::coalesce(plan);
        cpu::run(plan);
    }

    // Returns `t`, or a copy if it overlaps the output. No copy is made if corresponding elements have the same location.
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

    void run_on_device(const Scalar* params, const Tensor& out) const {
        View views[kMaxOperands];
        Tensor copies[kMaxOperands];
        int64_t strides[kMaxOperands][kMaxDims];
        Numbers<2 * kMaxOperands> numbers;
        for (int i = 0; i <= desc.num_inputs; ++i) {
            if (i > 0 && (!in[i - 1].is_tensor() || is_number_like(in[i - 1].tensor()))) {
                // A number is passed as a parameter, before the operator's own parameters, and its view is absent.
                views[i] = absent_view(compute);
                numbers.add(in[i - 1].is_tensor() ? value_of(in[i - 1].tensor()) : in[i - 1].scalar());
                continue;
            }
            const Tensor& t = i ? separate(in[i - 1].tensor(), out, copies[i - 1]) : out;
            record_current_use(*t.impl()->storage());
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
        call_pointwise_on_device(desc, device, compute, views, numbers, params);
    }
};

const Tensor& General::separate(const Tensor& t, const Tensor& out, Tensor& copy) {
    if (!overlaps(t, out)) return t;
    copy = make_tensor(t.sizes(), t.dtype(), t.device());
    copy_into(copy, t);
    return copy;
}

}  // namespace

Tensor pointwise(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params) {
    Fast fast;
    if (fast.build(desc, inputs)) [[likely]] {
        check_params(desc, params, fast.dtype);
        Tensor out = make_like(*fast.shape, fast.result);
        fast.run(desc, inputs, params, out);
        return out;
    }
    General general(desc, inputs, params);
    Tensor out = general.allocate();
    general.run(params, out);
    return out;
}

void pointwise_views(const PointwiseDesc& desc, const KernelArgs& k) {
    const View& out = k.out(0);
    PointwisePlan plan;
    Cell cells[kMaxOperands];
    Scalar params[2 * kMaxOperands];
    int next = 0;
    plan.ndim = out.ndim;
    plan.num_operands = 1 + desc.num_inputs;
    plan.loop = desc.loops().loop[static_cast<int>(k.compute)];
    if (!plan.loop) no_loop(desc, k.compute);
    std::copy_n(out.sizes, out.ndim, plan.sizes);
    for (int i = 0; i <= desc.num_inputs; ++i) {
        const View& v = k.tensors[i];
        plan.loop_dtype[i] = i == 0                            ? result_of(desc, k.compute)
                             : desc.bool_inputs >> (i - 1) & 1 ? DType::Bool
                                                               : k.compute;
        if (v.defined()) {
            plan.data[i] = static_cast<char*>(v.data);
            plan.dtype[i] = v.dtype;
            for (int d = 0; d < out.ndim; ++d)
                plan.strides[i][d] = v.strides[d] * static_cast<int64_t>(itemsize(v.dtype));
        } else {
            store_number(cells[i], to_scalar(k.params[next++]), plan.loop_dtype[i]);
            plan.data[i] = reinterpret_cast<char*>(&cells[i]);
            plan.dtype[i] = plan.loop_dtype[i];
            std::fill_n(plan.strides[i], out.ndim, 0);
        }
    }
    for (int i = 0; i < desc.num_params; ++i) params[i] = to_scalar(k.params[next + i]);
    plan.params = params;
    plan.packs = true;
    cpu::sort_dimensions(plan);
    cpu::coalesce(plan);
    cpu::run(plan);
}

static bool shares_memory(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Tensor& out) {
    return std::any_of(inputs, inputs + desc.num_inputs, [&](const TensorOrScalar& v) {
        return v.is_tensor() && v.tensor().impl()->storage() == out.impl()->storage();
    });
}

Tensor pointwise_into(const PointwiseDesc& desc, const TensorOrScalar* inputs, const Scalar* params,
                      const Tensor& out, Form form) {
    Fast fast;
    // In place, with the first input as output. The fast path requires that the other inputs do not overlap the output.
    if (form == Form::InPlace && fast.build(desc, inputs) && fast.result == out.dtype() &&
        inputs[0].is_tensor() && inputs[0].tensor().is_same(out)) {
        bool apart = true;
        for (int i = 1; i < desc.num_inputs; ++i)
            apart &= !inputs[i].is_tensor() || !overlaps(inputs[i].tensor(), out);
        if (apart) {
            check_params(desc, params, out.dtype());
            check_writable(desc.name, out);
            begin_write(desc.name, out);
            fast.run(desc, inputs, params, out);
            return out;
        }
    }
    General general(desc, inputs, params);
    IntList shape(general.sizes, static_cast<size_t>(general.ndim));
    if (form == Form::InPlace) {
        RL_CHECK(std::equal(shape.begin(), shape.end(), out.sizes().begin(), out.sizes().end()),
                 throw_runtime, "%s_: the tensor to modify has shape %s, but the operands broadcast to %s",
                 desc.name, to_string(out.sizes()).c_str(), to_string(shape).c_str());
        RL_CHECK(can_cast(general.result, out.dtype()), throw_runtime,
                 "%s_: a result of dtype %s cannot be written to a tensor of dtype %s", desc.name,
                 name(general.result), name(out.dtype()));
        check_writable(desc.name, out);
    } else {
        RL_CHECK(out.device() == general.device, throw_runtime,
                 "%s(out): out is on %s, the operands are on %s", desc.name, name(out.device()).c_str(),
                 name(general.device).c_str());
        // Resizing would free the memory of the operands.
        const bool would_free =
            !std::equal(shape.begin(), shape.end(), out.sizes().begin(), out.sizes().end()) &&
            shares_memory(desc, inputs, out);
        // The result is rounded to its dtype before it is converted to the dtype of `out`. The CPU's loops do this,
        // except the loops for half types.
        const bool converts = out.dtype() != general.result;
        const bool rounds =
            compute_dtype(general.result) != general.result || general.device.type != DeviceType::CPU;
        if (would_free || (converts && rounds)) {
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

}  // namespace rushlight
