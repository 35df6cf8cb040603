#include "layout.h"

#include <algorithm>

#include "rushlight/autograd/batch.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/empty_strided.h"
#include "rushlight/sparse.h"

namespace rushlight::autograd {
namespace {

// Whether both tensors have the same strides in all dimensions whose size is not 1.
bool same_strides(const Tensor& a, const Tensor& b) {
    for (int64_t d = 0; d < a.dim(); ++d)
        if (a.sizes()[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
    return true;
}

bool are_strided(const Tensor& a, const Tensor& b) {
    return !is_sparse(a) && !is_sparse(b) && std::ranges::equal(a.sizes(), b.sizes());
}

}  // namespace

Tensor laid_out_like(const Tensor& t, const Tensor& tangent) {
    if (!tangent.defined() || !are_strided(t, tangent)) return tangent;
    const bool fits = t.impl()->has(Flag::Dense) ? same_strides(t, tangent) : tangent.is_contiguous();
    return fits ? tangent : copy_laid_out_like(t, tangent);
}

Tensor copy_laid_out_like(const Tensor& t, const Tensor& tangent) {
    if (!are_strided(t, tangent) || !t.impl()->has(Flag::Dense) || t.is_contiguous())
        return ops::clone(tangent, "contiguous");
    BatchLevels levels;
    levels.add(tangent);
    const Tensor made =
        levels.bits ? batched_zeros(t.sizes(), t.strides(), tangent.dtype(), tangent.device(), levels)
                    : ops::empty_strided(t.sizes(), t.strides(), tangent.dtype(), tangent.device(), false);
    return ops::copy_(made, tangent, false);
}

}  // namespace rushlight::autograd
