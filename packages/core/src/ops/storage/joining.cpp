#include "bodies/joining.h"
#include "ops/copying.h"
#include "ops/memory_format.h"
#include "ops/views.h"

namespace rushlight::storage {
namespace {

// cat ignores empty 1-d tensors, whatever the other shapes are, because PyTorch once used them as "no tensor".
bool passed_over(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
    RL_CHECK(!tensors.empty(), throw_value, "cat(tensors): expected a non-empty list of Tensors");
    const Tensor* first = nullptr;
    DType dtype = tensors[0].dtype();
    for (const Tensor& t : tensors) {
        RL_CHECK(t.dim() > 0, throw_runtime,
                 "cat(tensors): a 0-d tensor cannot be joined\nhint: use stack()");
        dtype = promote(dtype, t.dtype());
        if (!first && !passed_over(t)) first = &t;
    }
    if (!first) return make_tensor(tensors[0].sizes(), dtype, tensors[0].device());
    int d = wrap_dim("cat", dim, first->dim());
    int64_t sizes[kMaxDims];
    std::copy(first->sizes().begin(), first->sizes().end(), sizes);
    sizes[d] = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& t = tensors[i];
        if (passed_over(t)) continue;
        RL_CHECK(
            t.dim() == first->dim(), throw_runtime,
            "cat(tensors): all tensors need the same number of dimensions, but tensor %zu has shape %s and the first has %s",
            i, to_string(t.sizes()).c_str(), to_string(first->sizes()).c_str());
        RL_CHECK(
            t.device() == first->device(), throw_runtime,
            "cat(tensors): all tensors must be on one device, but tensor %zu is on %s and the first on %s", i,
            name(t.device()).c_str(), name(first->device()).c_str());
        for (int k = 0; k < first->dim(); ++k)
            RL_CHECK(
                k == d || t.sizes()[k] == sizes[k], throw_runtime,
                "cat(tensors, dim=%d): sizes must agree except along dim, but tensor %zu has shape %s and the first has %s",
                d, i, to_string(t.sizes()).c_str(), to_string(first->sizes()).c_str());
        RL_CHECK(!__builtin_add_overflow(sizes[d], t.sizes()[d], &sizes[d]), throw_runtime,
                 "cat(tensors, dim=%d): too many elements along dim", d);
    }
    // If all tensors have the same memory format, the result has it, too.
    MemoryFormat format = first->dim() < 4 ? MemoryFormat::Contiguous : format_of(*first);
    for (const Tensor& t : tensors) {
        if (format == MemoryFormat::Contiguous) break;
        if (!passed_over(t) && format_of(t) != format) format = MemoryFormat::Contiguous;
    }
    Tensor out =
        make_in_format(IntList(sizes, static_cast<size_t>(first->dim())), dtype, first->device(), format);
    ViewSpec part(out);
    for (const Tensor& t : tensors) {
        if (passed_over(t)) continue;
        part.sizes[d] = t.sizes()[d];
        copy_into(take_view(out, part), t);
        part.offset += part.sizes[d] * part.strides[d];
    }
    return out;
}

}  // namespace rushlight::storage
