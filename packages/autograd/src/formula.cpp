#include "formula.h"

#include <algorithm>

#include "layout.h"
#include "rushlight/autograd/batch.h"
#include "rushlight/half.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/new_zeros.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/view.h"
#include "rushlight/ops/zero_.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::autograd::f {

std::vector<int64_t> inverse_order(IntList permutation) {
    std::vector<int64_t> inverse(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
        inverse[static_cast<size_t>(wrap(permutation[i], static_cast<int64_t>(permutation.size())))] =
            static_cast<int64_t>(i);
    return inverse;
}

std::vector<Tensor> split_like(const Tensor& grad, std::span<const SavedShape> shapes, int64_t dim) {
    std::vector<Tensor> pieces;
    int64_t d = wrap(dim, grad.dim()), at = 0;
    for (const SavedShape& s : shapes) {
        bool passed_over = s.ndim() == 1 && s.shape()[0] == 0;
        int64_t length = passed_over ? 0 : s.shape()[static_cast<size_t>(d)];
        // If all tensors are passed over, `dim` may be out of range.
        Tensor piece = ops::narrow(grad, passed_over ? 0 : d, passed_over ? 0 : at, length);
        at += length;
        if (passed_over) piece = ops::view(piece, s.shape());
        pieces.push_back(piece.dtype() == s.dtype() ? piece : ops::_to_copy(piece, s.dtype(), std::nullopt));
    }
    return pieces;
}

Tensor fit(const Tensor& grad, IntList shape, DType dtype) {
    if (grad.dtype() == dtype &&
        std::equal(shape.begin(), shape.end(), grad.sizes().begin(), grad.sizes().end()))
        return grad;
    SavedShape wanted;
    wanted.require(shape, dtype, grad.device());
    return wanted.fit(grad);
}

Tensor restore(const Tensor& reduced, IntList shape, const std::optional<IntList>& dim, bool keepdim) {
    if (shape.empty()) return reduced;
    int64_t ndim = static_cast<int64_t>(shape.size());
    Tensor kept = reduced;
    bool all = !dim || dim->empty();
    if (!keepdim || reduced.dim() != ndim) {
        int64_t sizes[kMaxDims];
        std::copy(shape.begin(), shape.end(), sizes);
        for (int64_t d = 0; d < ndim; ++d)
            if (all) sizes[d] = 1;
        if (!all)
            for (int64_t d : *dim) sizes[wrap(d, ndim)] = 1;
        kept = ops::view(kept.is_contiguous() ? kept : ops::clone(kept, "contiguous"),
                         IntList(sizes, static_cast<size_t>(ndim)));
    }
    return ops::expand(kept, shape);
}

Scalar rounded(const Scalar& number, const Tensor& t) {
    if (t.dtype() == DType::Float16) return static_cast<double>(static_cast<float>(Half(number.to<float>())));
    if (t.dtype() == DType::BFloat16)
        return static_cast<double>(static_cast<float>(BFloat16(number.to<float>())));
    return number;
}

Tensor scaled(const Tensor& t, const Tensor& weight) { return weight.defined() ? ops::mul(t, weight) : t; }

Tensor channelwise(const Tensor& t, const Tensor& weight) {
    if (!weight.defined()) return t;
    return ops::transpose(ops::mul(ops::transpose(t, 1, -1), weight), 1, -1);
}

Tensor in_format(const Tensor& t, MemoryFormat format) {
    return format_of(t) == format ? t : ops::clone(t, name(format));
}

bool materialize(std::span<Tensor> grads, const SavedShape* shapes) {
    const Tensor* there = nullptr;
    for (const Tensor& g : grads)
        if (g.defined()) there = &g;
    if (!there) return false;
    for (size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].defined() && is_differentiable(shapes[i].dtype()))
            grads[i] = ops::new_zeros(*there, shapes[i].shape(), shapes[i].dtype(), std::nullopt, false);
    return true;
}

bool wants_any(Node& node, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; ++i)
        if (node.wants(i)) return true;
    return false;
}

bool has_any(Node& node, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; ++i)
        if (node.edges()[i]) return true;
    return false;
}

void spread(const std::vector<Tensor>& shares, Node& node, uint32_t first, std::span<Tensor> out) {
    for (size_t i = 0; i < shares.size(); ++i)
        if (node.wants(first + static_cast<uint32_t>(i))) out[first + i] = shares[i];
}

bool conjugate_all(std::span<Tensor> grads) {
    for (Tensor& g : grads) g = conjugate_one(g);
    return true;
}
Tensor conjugate_one(const Tensor& share) { return share.defined() ? ops::conj(share) : share; }
std::vector<Tensor> conjugated(bool conjugate, std::vector<Tensor> shares) {
    if (conjugate)
        for (Tensor& share : shares) share = conjugate_one(share);
    return shares;
}

// Whether no other tensor refers to the memory of `t`, and no two elements of `t` share memory.
static bool owns_memory(const Tensor& t) {
    if (t.impl()->use_count() > 1) return false;
    const TensorImpl* impl = physical(t).impl();
    if (!impl->has(Flag::Dense)) return false;
    const uint32_t users = impl->storage()->use_count();
    if (is_batched(t)) return users == 2;  // the two users are the batched tensor and its value
    if (users != 2) return users == 1;
    const Tensor root = tangent_root(t);
    return !root.is_same(t) && root.impl()->use_count() == 2;
}

void give_tangent(const Tensor& result, Tensor tangent) {
    if (!tangent.defined() || !is_differentiable(result.dtype())) return set_tangent(result, Tensor());
    if (!std::ranges::equal(tangent.sizes(), result.sizes())) tangent = ops::expand(tangent, result.sizes());
    const bool view = result.impl()->is_view() || result.impl()->has(Flag::DetachedView);
    if (tangent.dtype() != result.dtype()) tangent = ops::_to_copy(tangent, result.dtype(), std::nullopt);
    if (!view)
        tangent = owns_memory(tangent) ? laid_out_like(result, tangent) : copy_laid_out_like(result, tangent);
    set_tangent(result, std::move(tangent));
}

Tensor tangent_or_zeros(const Tensor& t) {
    if (!t.defined()) return t;
    Tensor given = tangent(t);
    return given.defined() ? given : ops::zeros_like(t);  // integer tensors get zeros of their dtype
}

std::vector<Tensor> tangent_or_zeros(TensorList list) {
    std::vector<Tensor> tangents;
    for (const Tensor& t : list) tangents.push_back(tangent_or_zeros(t));
    return tangents;
}

Tensor tangent_to_write(const Tensor& t, const Tensor& value) {
    Tensor own = tangent(t);
    if (own.defined()) return own;
    const Tensor root = tangent_root(t);
    BatchLevels levels;
    levels.add(value);
    set_tangent(root, levels.bits
                          ? batched_zeros(root.sizes(), root.strides(), root.dtype(), root.device(), levels)
                          : ops::zeros_like(root));
    return tangent(t);
}

void write_tangent(const Tensor& t, const Tensor& value) {
    if (!is_differentiable(t.dtype())) return;
    if (value.defined()) {
        ops::copy_(tangent_to_write(t, value), value, false);
    } else if (Tensor own = tangent(t); own.defined()) {
        ops::zero_(own);
    }
}

void set_tangents(const std::vector<Tensor>& results, const std::vector<Tensor>& tangents) {
    for (size_t i = 0; i < results.size(); ++i) set_tangent(results[i], tangents[i]);
}

}  // namespace rushlight::autograd::f
