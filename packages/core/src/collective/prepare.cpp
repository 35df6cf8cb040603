// The arguments of collectives: checks, descriptions, and contiguous copies.
#include "collective/sequence.h"
#include "rushlight/dispatch.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/sparse.h"

namespace rushlight {
namespace {

constexpr const char* kNames[] = {"all_reduce", "reduce",         "broadcast",  "gather", "all_gather",
                                  "scatter",    "reduce_scatter", "all_to_all", "barrier"};
constexpr const char* kOps[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};

void check_tensor(const char* who, const Tensor& t, bool written) {
    RL_CHECK(t.device().type == DeviceType::CPU, throw_value,
             "%s: tensors must be on the CPU for the backend shm, got one on %s", who,
             name(t.device()).c_str());
    RL_CHECK(!is_sparse(t), throw_type, "%s: tensors must be strided, got one of layout %s", who,
             layout_name(t));
    RL_CHECK(!(t.impl()->stages() & bit(Stage::Batch)), throw_runtime, "%s: is not supported inside of vmap",
             who);
    if (!written) return;
    RL_CHECK(!t.impl()->storage()->read_only(), throw_runtime, "%s: cannot write to a read-only tensor", who);
    for (int64_t d = 0; d < t.dim(); ++d)
        RL_CHECK(t.numel() == 0 || t.size(d) == 1 || t.impl()->stride(static_cast<int>(d)) != 0,
                 throw_runtime,
                 "%s: cannot write to a tensor whose elements share memory\nhint: clone() it first", who);
}

// Returns a text such as "float32[12], int64[3]". Long lists are replaced by their number of tensors, number of
// elements and a hash.
std::string describe(const std::vector<Tensor>& tensors) {
    std::string text;
    uint64_t hash = 0xcbf29ce484222325;
    int64_t elements = 0;
    for (const Tensor& t : tensors) {
        if (text.size() < 120)
            text += (text.empty() ? "" : ", ") + std::string(name(t.dtype())) + "[" +
                    std::to_string(t.numel()) + "]";
        elements += t.numel();
        for (uint64_t word : {static_cast<uint64_t>(t.dtype()), static_cast<uint64_t>(t.numel())})
            hash = (hash ^ word) * 0x100000001b3;
    }
    if (text.size() < 120) return text;
    char sum[100];
    std::snprintf(sum, sizeof(sum), "%zu tensors with %lld elements, hash of dtypes and sizes %08x",
                  tensors.size(), static_cast<long long>(elements), static_cast<unsigned>(hash >> 32));
    return sum;
}

}  // namespace

// Called by the submitting thread, before anything is queued.
void ProcessGroup::prepare(CollectiveWork& work) const {
    Collective& what = work.what_;
    const char* who = kNames[static_cast<int>(what.kind)];
    const CollectiveKind kind = what.kind;
    auto is = [&](auto... kinds) { return ((kind == kinds) || ...); };
    using enum CollectiveKind;
    const bool rooted = is(Reduce, Broadcast, Gather, Scatter);
    const bool reduces = is(AllReduce, Reduce, ReduceScatter);
    const bool in_place = is(AllReduce, Reduce, Broadcast);
    RL_CHECK(!rooted || (what.root >= 0 && what.root < size_), throw_value,
             "%s: the root must be a rank from 0 to %d of the group, got %d", who, size_ - 1, what.root);
    const auto size = static_cast<size_t>(size_);
    auto counted = [&](const std::vector<Tensor>& list, size_t n, const char* what_list) {
        RL_CHECK(list.size() == n, throw_value, "%s: needs %zu %s, got %zu", who, n, what_list, list.size());
    };
    const bool root = rank_ == what.root;
    if (is(Gather, AllGather)) {
        counted(what.inputs, 1, "input tensor");
        counted(what.outputs, kind == AllGather || root ? size : 0, "output tensors, one for each rank");
    } else if (is(Scatter, ReduceScatter)) {
        counted(what.outputs, 1, "output tensor");
        counted(what.inputs, kind == ReduceScatter || root ? size : 0, "input tensors, one for each rank");
    } else if (kind == AllToAll) {
        counted(what.outputs, size, "output tensors, one for each rank");
        counted(what.inputs, size, "input tensors, one for each rank");
    }
    const Tensor* like = kind == Broadcast || kind == Barrier ? nullptr
                         : !what.inputs.empty()               ? &what.inputs[0]
                         : !what.outputs.empty()              ? &what.outputs[0]
                                                              : nullptr;
    StagesOff plain(kAllStages);
    auto each = [&](std::vector<Tensor>& list, bool read, bool written) {
        for (Tensor& t : list) {
            check_tensor(who, t, written);
            RL_CHECK(!like || t.dtype() == like->dtype(), throw_type,
                     "%s: tensors must have one dtype, got %s and %s", who, name(like->dtype()),
                     name(t.dtype()));
            RL_CHECK(!like || in_place || t.numel() == like->numel(), throw_value,
                     "%s: tensors must have the same number of elements, got %lld and %lld", who,
                     static_cast<long long>(like->numel()), static_cast<long long>(t.numel()));
        }
        for (Tensor& t : list) {
            if (t.is_contiguous()) continue;
            Tensor stand_in = read ? ops::contiguous(t) : make_tensor(t.sizes(), t.dtype());
            if (written) work.copies_.emplace_back(t, stand_in);
            t = stand_in;
        }
    };
    if (reduces && like) check_reducible(who, what.op, like->dtype());
    const std::vector<Tensor> written = in_place ? what.inputs : what.outputs;
    work.text_ = who;
    if (reduces) work.text_ += std::string("(") + kOps[static_cast<int>(what.op)] + ")";
    if (kind != Barrier) work.text_ += " of " + describe(is(Scatter) ? what.outputs : what.inputs);
    if (rooted) work.text_ += kind == Broadcast || kind == Scatter ? " from rank " : " to rank ";
    if (rooted) work.text_ += std::to_string(what.root);
    if (!what.label.empty()) work.text_ += ", " + what.label;
    // A copy, because the tensors in the lists are replaced below.
    Tensor first = like ? *like : Tensor();
    like = first.defined() ? &first : nullptr;
    each(what.inputs, true, in_place);
    each(what.outputs, false, true);
    for (const Tensor& t : written) begin_write(who, t);
}

void ProcessGroup::prepare_message(CollectiveWork& work, const Tensor& tensor, int peer, int tag,
                                   bool sends) const {
    const char* who = sends ? "send" : "recv";
    RL_CHECK(peer < size_ && (peer >= 0 || !sends), throw_value,
             "%s: must be a rank from 0 to %d of the group, got %d", sends ? "send(dst)" : "recv(src)",
             size_ - 1, peer);
    check_tensor(who, tensor, !sends);
    StagesOff plain(kAllStages);
    Tensor t = tensor;
    if (!t.is_contiguous()) {
        t = sends ? ops::contiguous(t) : make_tensor(t.sizes(), t.dtype());
        if (!sends) work.copies_.emplace_back(tensor, t);
    }
    work.what_.inputs = {t};
    work.text_ = std::string(who) + " of " + describe(work.what_.inputs) + (sends ? " to " : " from ") +
                 (peer < 0 ? "any rank" : "rank " + std::to_string(peer)) + " with tag " +
                 std::to_string(tag);
    if (!sends) begin_write(who, tensor);
}

}  // namespace rushlight
