#include "ops/reduce.h"

#include "cpu/cast.h"
#include "cpu/pointwise_driver.h"
#include "cpu/reduce_driver.h"
#include "ops/copying.h"
#include "ops/device_kernel.h"
#include "ops/params.h"
#include "ops/views.h"
#include "rushlight/backend.h"

namespace rushlight {
namespace {

// Whether all dimensions are reduced: without `dims`, or with an empty list. For all() and any(), an empty list reduces no
// dimension, as in PyTorch and NumPy.
bool reduces_all(const ReduceDesc& desc, const std::optional<IntList>& dims) {
    return !dims || (dims->empty() && desc.result != ReduceDesc::Result::Bool);
}

// Returns the reduced dimensions as a bit set.
uint64_t reduced_dims(const ReduceDesc& desc, const Tensor& input, const std::optional<IntList>& dims) {
    uint64_t all = input.dim() == 64 ? ~uint64_t{0} : (uint64_t{1} << input.dim()) - 1;
    if (reduces_all(desc, dims)) return all;
    uint64_t chosen = 0;
    for (int64_t dim : *dims) {
        int d = wrap_dim(desc.name, dim, input.dim());
        RL_CHECK(!(chosen >> d & 1), throw_runtime, "%s(dim): dimension %d is listed twice in %s", desc.name,
                 d, to_string(*dims).c_str());
        chosen |= uint64_t{1} << d;
    }
    return chosen & all;
}

DType result_of(const ReduceDesc& desc, DType input) {
    switch (desc.result) {
        case ReduceDesc::Result::Bool: return input == DType::UInt8 ? DType::UInt8 : DType::Bool;
        case ReduceDesc::Result::Sum: return is_integral(input, true) ? DType::Int64 : input;
        case ReduceDesc::Result::Index: return DType::Int64;
        case ReduceDesc::Result::Real: return real_dtype(input);
        default: return input;
    }
}

const ReduceLoops& loops_for(const ReduceDesc& desc, DType dtype) {
    const ReduceLoops& loops = desc.loops().loop[static_cast<int>(dtype)];
    RL_CHECK(
        loops.start, throw_not_implemented, "%s: not defined for dtype %s%s", desc.name, name(dtype),
        is_floating(dtype) || is_complex(dtype) ? "" : "\nhint: convert the input to a floating dtype first");
    return loops;
}

struct Reduction {
    const ReduceDesc& desc;
    const ReduceLoops* loops;
    uint64_t reduced;
    DType result;
    int ndim = 0;  // number of dimensions of the result
    int64_t sizes[kMaxDims];

    Reduction(const ReduceDesc& d, const Tensor& input, const std::optional<IntList>& dims, bool keepdim,
              DType t)
        : desc(d), loops(&loops_for(d, input.dtype())), reduced(reduced_dims(d, input, dims)), result(t) {
        bool empty = false;
        for (int i = 0; i < input.dim(); ++i) {
            int64_t size = input.impl()->size(i);
            bool gone = reduced >> i & 1;
            empty |= gone && size == 0;
            if (!gone) sizes[ndim++] = size;
            else if (keepdim) sizes[ndim++] = 1;
        }
        if (empty && !loops->has_identity) fail_empty(input, dims);
    }
    IntList shape() const { return {sizes, static_cast<size_t>(ndim)}; }
    [[noreturn, gnu::cold]] void fail_empty(const Tensor& input, const std::optional<IntList>& dims) const {
        const char* format =
            "%s(input): shape %s has no elements along a reduced dimension, and %s is not defined for zero elements";
        std::string shape = to_string(input.sizes());
        if ((dims && !dims->empty()) || desc.result == ReduceDesc::Result::Index)
            throw_index(format, desc.name, shape.c_str(), desc.name);
        throw_runtime(format, desc.name, shape.c_str(), desc.name);
    }

    void run(const Tensor& input, const Scalar* params, const Tensor& out, const Tensor& second) const {
        if (out.numel() == 0 || input.device().type == DeviceType::Meta) return;
        if (input.device().type != DeviceType::CPU) return run_on_device(input, params, out, second);
        cpu::ReducePlan plan;
        plan.loops = loops;
        plan.params = params;
        plan.in = static_cast<const char*>(input.impl()->data());
        plan.out = static_cast<char*>(out.impl()->data());
        plan.out_dtype = out.dtype();
        if (second.defined()) plan.second = static_cast<char*>(second.impl()->data());
        const auto size = static_cast<int64_t>(itemsize(input.dtype()));
        for (int d = 0; d < input.dim(); ++d) {
            if (reduced >> d & 1) {
                plan.reduced[plan.num_reduced] = input.impl()->size(d);
                plan.reduced_stride[plan.num_reduced++] = input.impl()->stride(d) * size;
            } else {
                plan.kept[plan.num_kept] = input.impl()->size(d);
                plan.kept_stride[plan.num_kept++] = input.impl()->stride(d) * size;
            }
        }
        int64_t step = 1;  // the output is row-major
        for (int k = plan.num_kept - 1; k >= 0; --k) {
            plan.out_stride[k] = step;
            step *= plan.kept[k];
        }
        cpu::run(plan);
    }

    // The kernel receives outputs with the dimensions of the input. A reduced dimension has size 1 and stride 0.
    void run_on_device(const Tensor& input, const Scalar* params, const Tensor& out,
                       const Tensor& second) const {
        Device device = input.device();
        const int n = static_cast<int>(input.dim());
        int64_t out_sizes[kMaxDims], out_strides[kMaxDims], step = 1;
        for (int d = n - 1; d >= 0; --d) {
            bool gone = reduced >> d & 1;
            out_sizes[d] = gone ? 1 : input.impl()->size(d);
            out_strides[d] = gone ? 0 : step;
            step *= out_sizes[d];
        }
        record_current_use(*input.impl()->storage());
        View views[3];
        uint16_t count = 0;
        for (const Tensor* t : {&out, &second})
            if (t->defined())
                views[count++] =
                    View{t->impl()->data(), out_sizes, out_strides, t->numel(), n, t->dtype(), 1};
        const uint16_t outputs = count;
        views[count] = input.impl()->view();
        const Numbers<8> numbers(params, desc.num_params);
        call_on_device(desc.name, device, *desc.kernels, KernelPart::Run,
                       {sizeof(KernelArgs), outputs, 1, desc.num_params, input.dtype(), loops->wide, views,
                        numbers.params(), nullptr});
    }
};

}  // namespace

Tensor reduce(const ReduceDesc& desc, const Tensor& input, std::optional<IntList> dims, bool keepdim,
              std::optional<DType> dtype, const Scalar* params) {
    if (dtype && *dtype != input.dtype()) {
        // Sums of floating-point numbers are accumulated in a wide type. So the input need not be converted if the dtype
        // of the result is wider.
        bool widens = is_differentiable(*dtype) && category(input.dtype()) == category(*dtype);
        if (!widens) {
            Tensor converted = make_tensor(input.sizes(), *dtype, input.device());
            copy_into(converted, input);
            return reduce(desc, converted, dims, keepdim, dtype, params);
        }
    }
    DType result = dtype ? *dtype : result_of(desc, input.dtype());
    if (reduces_all(desc, dims) && !keepdim && input.is_contiguous() &&
        input.device().type == DeviceType::CPU) {
        int64_t n = input.numel();
        const ReduceLoops& loops = loops_for(desc, input.dtype());
        if (n > 0 && n <= cpu::kGrain) {
            alignas(16) char acc[32], wide[16];
            const auto size = static_cast<int64_t>(itemsize(input.dtype()));
            loops.start(acc, 1, params);
            loops.accumulate(acc, static_cast<const char*>(input.impl()->data()), 1, size, n, size, 0,
                             params);
            Tensor out = make_tensor({}, result);
            char* data = static_cast<char*>(out.impl()->data());
            bool same = loops.wide == result;
            loops.finish(same ? data : wide, nullptr, acc, 1, n, params);
            if (!same) {
                char* pair[2] = {data, wide};
                int64_t strides[2] = {0, 0};
                run_row(cpu::cast_loop(result, loops.wide), pair, strides, 1);
            }
            return out;
        }
    }
    Reduction reduction(desc, input, dims, keepdim, result);
    Tensor out = make_tensor(reduction.shape(), result, input.device());
    reduction.run(input, params, out, Tensor());
    return out;
}

void reduce_views(const ReduceDesc& desc, const KernelArgs& k) {
    const View &out = k.out(0), &in = k.in(0);
    Scalar params[8];
    for (int i = 0; i < desc.num_params; ++i) params[i] = to_scalar(k.params[i]);
    cpu::ReducePlan plan;
    plan.loops = &loops_for(desc, in.dtype);
    plan.params = params;
    plan.in = in.as<const char>();
    plan.out = out.as<char>();
    plan.out_dtype = out.dtype;
    if (k.num_outputs > 1) plan.second = k.out(1).as<char>();
    const auto size = static_cast<int64_t>(itemsize(in.dtype));
    for (int d = 0; d < in.ndim; ++d) {
        if (out.strides[d] == 0) {
            plan.reduced[plan.num_reduced] = in.sizes[d];
            plan.reduced_stride[plan.num_reduced++] = in.strides[d] * size;
        } else {
            plan.kept[plan.num_kept] = in.sizes[d];
            plan.out_stride[plan.num_kept] = out.strides[d];
            plan.kept_stride[plan.num_kept++] = in.strides[d] * size;
        }
    }
    cpu::run(plan);
}

std::tuple<Tensor, Tensor> reduce_with_indices(const ReduceDesc& desc, const Tensor& input,
                                               std::optional<IntList> dims, bool keepdim,
                                               const Scalar* params) {
    Reduction reduction(desc, input, dims, keepdim, result_of(desc, input.dtype()));
    Tensor out = make_tensor(reduction.shape(), reduction.result, input.device());
    Tensor indices = make_tensor(reduction.shape(), DType::Int64, input.device());
    reduction.run(input, params, out, indices);
    return {std::move(out), std::move(indices)};
}

}  // namespace rushlight
