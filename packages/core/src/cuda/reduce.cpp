#include "cuda/reduce.h"

#include "cuda/failure.h"
#include "cuda/geometry.h"
#include "cuda/kernel_list.h"
#include "ops/cell.h"

namespace rushlight::cuda {
namespace {

/// Enqueues a reduction to at most kLaunchElements results with at most kLoopDims dimensions. A larger reduction is split
/// along the first dimension of its results.
void queue(const Geometry<3>& kept, int first, Reduction& r, ReduceFn loop, const Scalar* params,
           KernelContext* context) {
    int64_t count = 1;
    for (int d = first; d < kept.ndim; ++d) count *= kept.sizes[d];
    if (count == 0) return;
    if (kept.ndim - first <= kLoopDims && count <= kLaunchElements) {
        r.kept_dims = kept.ndim - first;
        r.count = count;
        for (int d = 0; d < r.kept_dims; ++d) {
            r.kept[d] = kept.sizes[first + d];
            r.kept_in[d] = kept.strides[first + d][0];
            r.kept_out[d] = kept.strides[first + d][1];
            r.kept_second[d] = kept.strides[first + d][2];
        }
        return loop(r, params, context);
    }
    const auto moved = [&](int64_t steps) {
        r.in += steps * kept.strides[first][0];
        r.out += steps * kept.strides[first][1];
        if (r.second) r.second += steps * kept.strides[first][2];
    };
    const int64_t rest = count / kept.sizes[first];
    if (rest > kLaunchElements || kept.ndim - first > kLoopDims) {  // one index of the dimension at a time
        for (int64_t i = 0; i < kept.sizes[first]; ++i) {
            queue(kept, first + 1, r, loop, params, context);
            moved(1);
        }
        return moved(-kept.sizes[first]);
    }
    Geometry<3> part = kept;
    const int64_t share = kLaunchElements / rest;
    for (int64_t begin = 0; begin < kept.sizes[first]; begin += share) {
        part.sizes[first] = std::min(share, kept.sizes[first] - begin);
        queue(part, first, r, loop, params, context);
        moved(part.sizes[first]);
    }
    moved(-kept.sizes[first]);
}

}  // namespace

BackendStatus run_reduce(const Reducer& op, const KernelArgs& args) {
    return guarded([&] {
        const View &out = args.out(0), &in = args.in(0);
        const ReduceFn loop = op.loops->loop[static_cast<int>(in.dtype)];
        if (!loop) fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(in.dtype));
        Scalar params[8];
        for (int i = 0; i < op.num_params; ++i) params[i] = to_scalar(args.params[i]);
        Reduction r = {};
        r.in = in.as<const char>();
        r.out = out.as<char>();
        r.out_dtype = out.dtype;
        if (args.num_outputs > 1 && args.out(1).defined()) r.second = args.out(1).as<char>();
        Geometry<3> kept;
        Geometry<1> reduced;  // in their original order, which determines the indices
        const auto size = static_cast<int64_t>(itemsize(in.dtype)),
                   wide = static_cast<int64_t>(itemsize(out.dtype));
        r.n = 1;
        for (int d = 0; d < in.ndim; ++d) {
            const int64_t step = in.strides[d] * size;
            if (out.strides[d] == 0) {
                reduced.add(in.sizes[d], {step});
                r.n *= in.sizes[d];
            } else {
                kept.add(in.sizes[d],
                         {step, out.strides[d] * wide, out.strides[d] * int64_t{sizeof(int64_t)}});
            }
        }
        reduced.join();
        kept.sort();
        kept.join();
        if (reduced.ndim > kLoopDims || (reduced.ndim > 1 && r.n > kLaunchElements))
            fail(BackendStatus::NotImplemented,
                 "cannot reduce %lld elements over %d dimensions that cannot be merged\n"
                 "hint: reduce a contiguous copy",
                 (long long)r.n, reduced.ndim);
        r.reduced_dims = reduced.ndim;
        for (int d = 0; d < reduced.ndim; ++d) {
            r.reduced[d] = reduced.sizes[d];
            r.reduced_in[d] = reduced.strides[d][0];
        }
        use_device(args.context->call->device);
        remember(args.context->call);
        queue(kept, 0, r, loop, params, args.context);
    });
}

}  // namespace rushlight::cuda
