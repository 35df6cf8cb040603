#include "cuda/pointwise.h"

#include "cuda/kernels.h"

#include "cuda/failure.h"
#include "cuda/geometry.h"
#include "cuda/kernel_list.h"
#include "ops/cell.h"

namespace rushlight::cuda {
namespace {

using Dims = Geometry<kLoopOperands>;

/// Enqueues passes over at most kLoopDims dimensions and kLaunchElements elements. A larger pass is split along its
/// first dimension.
void queue(const Dims& dims, int first, Pass& pass, LoopFn loop, const Scalar* params, cudaStream_t stream) {
    int64_t n = 1;
    for (int d = first; d < dims.ndim; ++d) n *= dims.sizes[d];
    if (n == 0) return;
    if (dims.ndim - first <= kLoopDims && n <= kLaunchElements) {
        pass.ndim = dims.ndim - first;
        pass.n = n;
        for (int d = 0; d < pass.ndim; ++d) {
            pass.sizes[d] = dims.sizes[first + d];
            for (int k = 0; k < pass.count; ++k) pass.operands[k].strides[d] = dims.strides[first + d][k];
        }
        return loop(pass, params, stream);
    }
    const auto moved = [&](int64_t steps) {
        for (int k = 0; k < pass.count; ++k)
            if (pass.operands[k].data) pass.operands[k].data += steps * dims.strides[first][k];
    };
    const int64_t rest = n / dims.sizes[first];
    if (rest > kLaunchElements || dims.ndim - first > kLoopDims) {  // one index of the dimension at a time
        for (int64_t i = 0; i < dims.sizes[first]; ++i) {
            queue(dims, first + 1, pass, loop, params, stream);
            moved(1);
        }
        return moved(-dims.sizes[first]);
    }
    Dims part = dims;
    const int64_t share = kLaunchElements / rest;
    for (int64_t begin = 0; begin < dims.sizes[first]; begin += share) {
        part.sizes[first] = std::min(share, dims.sizes[first] - begin);
        queue(part, first, pass, loop, params, stream);
        moved(part.sizes[first]);
    }
    moved(-dims.sizes[first]);
}

DType result_of(const Pointwise& op, DType compute) {
    switch (op.result) {
        case Pointwise::Result::Bool: return DType::Bool;
        case Pointwise::Result::Real: return real_dtype(compute);
        default: return compute;
    }
}

}  // namespace

void queue_pointwise(const Pointwise& op, const KernelArgs& args, DType compute) {
    const LoopFn loop = op.loops->loop[static_cast<int>(compute)];
    if (!loop) fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(compute));
    const View& out = args.out(0);
    if (out.numel == 0) return;
    Pass pass = {};
    pass.count = 1 + op.num_inputs;
    int next = 0;
    for (int i = 0; i < pass.count; ++i) {
        const View& v = args.tensors[i];
        PassOperand& operand = pass.operands[i];
        operand.loop_dtype = i == 0                          ? result_of(op, compute)
                             : op.bool_inputs >> (i - 1) & 1 ? DType::Bool
                                                             : compute;
        operand.dtype = operand.loop_dtype;
        if (v.defined()) {
            operand.data = v.as<char>();
            operand.dtype = v.dtype;
        } else {
            store_number(operand.number, to_scalar(args.params[next++]), operand.loop_dtype);
        }
    }
    Scalar params[2 * kLoopOperands];
    for (int i = 0; i < op.num_params; ++i) params[i] = to_scalar(args.params[next + i]);
    Dims dims;
    for (int d = 0; d < out.ndim; ++d) {
        int64_t strides[kLoopOperands] = {};
        for (int i = 0; i < pass.count; ++i) {
            const View& v = args.tensors[i];
            if (v.defined()) strides[i] = v.strides[d] * static_cast<int64_t>(itemsize(v.dtype));
        }
        dims.add(out.sizes[d], strides);
    }
    dims.sort();
    dims.join();
    const DeviceCall& call = *args.context->call;
    use_device(call.device);
    remember(&call);
    queue(dims, 0, pass, loop, params, static_cast<cudaStream_t>(call.stream));
}

BackendStatus run_pointwise(const Pointwise& op, const KernelArgs& args) {
    return guarded([&] { queue_pointwise(op, args, args.compute); });
}

void queue_broadcast(const View& out, const View& in, KernelContext* context) {
    int64_t strides[64];
    const int lead = out.ndim - in.ndim;
    for (int d = 0; d < out.ndim; ++d)
        strides[d] = d < lead || in.sizes[d - lead] == 1 ? 0 : in.strides[d - lead];
    View given = in;
    given.sizes = out.sizes;
    given.strides = strides;
    given.ndim = out.ndim;
    given.numel = out.numel;
    given.contiguous = 0;
    queue_copy(out, given, context);
}

void queue_zeros(const View& out, KernelContext* context) {
    if (out.numel == 0) return;
    KernelArgs args{};
    args.context = context;
    queue_fill(out, Param{Param::Kind::Int, 0, {0}}, args);
}

}  // namespace rushlight::cuda
