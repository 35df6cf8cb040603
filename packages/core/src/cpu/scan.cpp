#include "cpu/scan.h"

#include "cpu/contiguous.h"
#include "cpu/scan_kernels.h"
#include "rushlight/error.h"

namespace rushlight::cpu {
namespace {

template <class Loop>
Loop loop_of(const char* op, const Loop (&loops)[kNumDTypes], DType dtype) {
    const Loop loop = loops[static_cast<int>(dtype)];
    RL_CHECK(loop, throw_not_implemented, "%s: not defined for dtype %s", op, name(dtype));
    return loop;
}

void scan(KernelContext& ctx, const char* op, const ScanKernels::Scan (&loops)[kNumDTypes], const View& out,
          const View& input, int64_t dim) {
    const auto loop = loop_of(op, loops, out.dtype);
    if (out.numel > 0) loop(split_at(out, dim), out.data, contiguous_in(ctx, input, out.dtype).data);
}

void extreme(KernelContext& ctx, const char* op, const ScanKernels::Extreme (&loops)[kNumDTypes],
             const View& values, const View& indices, const View& input, int64_t dim) {
    const auto loop = loop_of(op, loops, values.dtype);
    if (values.numel > 0)
        loop(split_at(values, dim), values.data, indices.as<int64_t>(), contiguous_in(ctx, input).data);
}

}  // namespace

void cumsum(KernelContext& ctx, const View& out, const View& input, int64_t dim) {
    scan(ctx, "cumsum", scan_kernels().sum, out, input, dim);
}
void cumprod(KernelContext& ctx, const View& out, const View& input, int64_t dim) {
    scan(ctx, "cumprod", scan_kernels().product, out, input, dim);
}
void logcumsumexp(KernelContext& ctx, const View& out, const View& input, int64_t dim) {
    scan(ctx, "logcumsumexp", scan_kernels().log_sum_exp, out, input, dim);
}

void cummax(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim) {
    extreme(ctx, "cummax", scan_kernels().largest, values, indices, input, dim);
}
void cummin(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim) {
    extreme(ctx, "cummin", scan_kernels().smallest, values, indices, input, dim);
}

void recurrence(KernelContext& ctx, const View& out, const View& factors, const View& terms, int64_t dim,
                bool reverse) {
    const auto loop = loop_of("_recurrence", scan_kernels().recurrence, out.dtype);
    if (out.numel > 0)
        loop(split_at(out, dim), out.data, contiguous_in(ctx, factors).data, contiguous_in(ctx, terms).data,
             reverse);
}

}  // namespace rushlight::cpu
