#include "cuda/reduce.h"

#include <vector>

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

/// Appends the elements of the dimensions from `first` on to `parts`. `at` holds the position of the first of these
/// elements. A part that one launch cannot process is split along its first dimension.
void split(const Geometry<1>& reduced, int first, ReducedPart at, std::vector<ReducedPart>& parts) {
    const int ndim = reduced.ndim - first;
    int64_t n = 1;
    for (int d = first; d < reduced.ndim; ++d) n *= reduced.sizes[d];
    if (n == 0 || ndim <= 1 || (ndim <= kLoopDims && n <= kLaunchElements)) {
        at.n = n;
        at.dims = n == 0 ? 0 : ndim;
        for (int d = 0; d < at.dims; ++d) {
            at.sizes[d] = reduced.sizes[first + d];
            at.strides[d] = reduced.strides[first + d][0];
        }
        parts.push_back(at);
        return;
    }
    const int64_t rest = n / reduced.sizes[first], step = reduced.strides[first][0];
    const auto move = [&](int64_t steps) {
        at.first += steps * rest;
        at.offset += steps * step;
    };
    if (rest > kLaunchElements || ndim > kLoopDims) {  // one index of the dimension at a time
        for (int64_t i = 0; i < reduced.sizes[first]; ++i, move(1)) split(reduced, first + 1, at, parts);
        return;
    }
    Geometry<1> share = reduced;
    for (int64_t left = reduced.sizes[first]; left > 0; left -= share.sizes[first]) {
        share.sizes[first] = std::min(kLaunchElements / rest, left);
        split(share, first, at, parts);
        move(share.sizes[first]);
    }
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
        std::vector<ReducedPart> parts;
        split(reduced, 0, ReducedPart{}, parts);
        r.parts = parts;
        use_device(args.context->call->device);
        remember(args.context->call);
        queue(kept, 0, r, loop, params, args.context);
    });
}

}  // namespace rushlight::cuda
