#include "ops/copying.h"

#include <algorithm>

#include "cpu/cast.h"
#include "cpu/contiguous.h"
#include "cpu/pointwise_driver.h"

namespace rushlight {
namespace {

using cpu::PointwisePlan;

// Returns the bytes [first, last) that the elements of a tensor can occupy.
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

// Whether the elements of the source are contiguous along a dimension other than the last, and the target is row-major. Such
// a copy transposes square tiles.
bool is_transposed(const Tensor& target, const Tensor& source) {
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

}  // namespace

bool overlaps(const Tensor& a, const Tensor& b) {
    if (a.impl()->storage() != b.impl()->storage() || a.numel() == 0 || b.numel() == 0 || same_geometry(a, b))
        return false;
    auto [a0, a1] = reach(a);
    auto [b0, b1] = reach(b);
    return a0 < b1 && b0 < a1;
}

static void copy_views(const KernelArgs& k) {
    PointwisePlan plan;
    plan.ndim = k.out(0).ndim;
    plan.num_operands = 2;
    plan.loop = cpu::cast_loop(k.out(0).dtype, k.in(0).dtype);
    plan.params = nullptr;
    std::copy_n(k.out(0).sizes, plan.ndim, plan.sizes);
    for (int i = 0; i < 2; ++i) {
        const View& v = k.tensors[i];
        plan.data[i] = v.as<char>();
        plan.dtype[i] = plan.loop_dtype[i] = v.dtype;
        for (int d = 0; d < plan.ndim; ++d)
            plan.strides[i][d] = v.strides[d] * static_cast<int64_t>(itemsize(v.dtype));
    }
    cpu::sort_dimensions(plan);
    cpu::coalesce(plan);
    cpu::run(plan);
}

SharedKernel copy_kernel{"copy", {{copy_views}}};

void copy_into(const Tensor& target, const Tensor& source, bool non_blocking) {
    if (target.numel() == 0 || target.device().type == DeviceType::Meta) return;
    if (target.device().type != DeviceType::CPU || source.device().type != DeviceType::CPU)
        return copy_across_devices(target, source, non_blocking);
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
    cpu::sort_dimensions(plan);
    cpu::coalesce(plan);
    cpu::run(plan);
}

}  // namespace rushlight
