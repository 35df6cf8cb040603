#include "ops/outputs.h"

#include <algorithm>
#include <vector>

#include "rushlight/error.h"
#include "rushlight/streams.h"
#include "rushlight/warning.h"

namespace rushlight {
namespace {

// Whether two elements share a memory location although no dimension has stride 0, as in rows of a sliding window.
bool overlaps_itself(const Tensor& t) {
    int64_t sizes[kMaxDims], strides[kMaxDims], furthest = 0;
    int n = 0;
    bool nested = true;
    for (int d = 0; d < t.dim(); ++d) {
        if (t.sizes()[d] == 1) continue;
        int k = n++;
        for (; k > 0 && strides[k - 1] > t.strides()[d]; --k) {
            strides[k] = strides[k - 1];
            sizes[k] = sizes[k - 1];
        }
        strides[k] = t.strides()[d];
        sizes[k] = t.sizes()[d];
    }
    for (int k = 0; k < n; ++k) {
        nested &= strides[k] > furthest;  // larger than the extent of all inner dimensions
        furthest += (sizes[k] - 1) * strides[k];
    }
    if (nested || t.numel() == 0) return false;
    if (t.numel() > furthest + 1) return true;
    // The dimensions interleave in memory, so the position of each element is checked.
    std::vector<bool> taken(static_cast<size_t>(furthest) + 1);
    int64_t index[kMaxDims] = {}, position = 0;
    while (true) {
        if (taken[static_cast<size_t>(position)]) return true;
        taken[static_cast<size_t>(position)] = true;
        int k = 0;
        for (; k < n && ++index[k] == sizes[k]; ++k) {
            position -= (sizes[k] - 1) * strides[k];
            index[k] = 0;
        }
        if (k == n) return false;
        position += strides[k];
    }
}

[[gnu::cold]] void check_guards(const char* op, Storage& storage) {
    RL_CHECK(
        !storage.read_only(), throw_runtime,
        "%s: this tensor is read-only, because it was made from read-only memory\nhint: clone() it first",
        op);
    RL_CHECK(!pinned_copy_pending(storage), throw_runtime,
             "%s: a copy between this pinned memory and a device is under way\n"
             "hint: synchronize the stream of the copy before writing to the memory",
             op);
    storage.set_copied(false);
}

bool has_shape(const Tensor& t, IntList sizes) {
    return std::equal(sizes.begin(), sizes.end(), t.sizes().begin(), t.sizes().end());
}

}  // namespace

void check_writable(const char* op, const Tensor& t) {
    if (t.impl()->storage()->guarded()) [[unlikely]]
        check_guards(op, *t.impl()->storage());
    if (t.impl()->has(Flag::Dense)) return;
    for (int d = 0; d < t.dim(); ++d)
        RL_CHECK(
            t.strides()[d] != 0 || t.sizes()[d] <= 1, throw_runtime,
            "%s: several elements of the tensor to be modified share one memory location (dimension %d of shape %s has "
            "stride 0)\nhint: clone() the expanded tensor first",
            op, d, to_string(t.sizes()).c_str());
    RL_CHECK(
        !overlaps_itself(t), throw_runtime,
        "%s: several elements of the tensor to be modified share one memory location (shape %s has strides %s)\n"
        "hint: clone() it first",
        op, to_string(t.sizes()).c_str(), to_string(t.strides()).c_str());
}

void check_out(const char* op, const Tensor& out, IntList sizes, DType result) {
    RL_CHECK(can_cast(result, out.dtype()), throw_runtime,
             "%s(out): a result of dtype %s cannot be cast to out's dtype %s", op, name(result),
             name(out.dtype()));
    check_writable(op, out);
    // A view that takes part in a graph would be recorded with its former geometry.
    RL_CHECK(has_shape(out, sizes) || !out.impl()->is_view() || out.numel() == 0 ||
                 !(out.impl()->stages() & bit(Stage::Autograd)),
             throw_runtime, "%s(out): a view of shape %s that requires grad cannot be resized to %s", op,
             to_string(out.sizes()).c_str(), to_string(sizes).c_str());
}

void prepare_out(const char* op, const Tensor& out, IntList sizes, DType result) {
    check_out(op, out, sizes, result);
    if (has_shape(out, sizes)) return;
    if (out.numel() > 0) {
        // PyTorch's text, because programs filter warnings by it.
        const std::string text = "An output with one or more elements was resized since it had shape " +
                                 to_string(out.sizes()) +
                                 ", which does not match the required output shape " + to_string(sizes) +
                                 " of " + op + "(out)\nhint: call out.resize_(0) first";
        warn(text.c_str());
    }
    resize_out(op, out, sizes, result);
}

void resize_out(const char* op, const Tensor& out, IntList sizes, DType result) {
    check_out(op, out, sizes, result);
    if (has_shape(out, sizes)) return;
    const Tensor plan = make_tensor(sizes, out.dtype(), Device{DeviceType::Meta});
    Storage* storage = out.impl()->storage();
    // An empty view grows from its offset.
    const int64_t offset = out.impl()->is_view() ? out.impl()->offset() : 0;
    const size_t bytes = static_cast<size_t>(offset + plan.numel()) * itemsize(out.dtype());
    if (plan.numel() > 0 && storage->nbytes() < bytes)
        storage->resize((std::string(op) + "(out)").c_str(), bytes);
    out.impl()->assign(Ref<Storage>::share(storage), plan.sizes(), plan.strides(), offset, out.dtype());
}

}  // namespace rushlight
