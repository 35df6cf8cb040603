// Checks the arguments of connectionist temporal classification, arranges the targets for its kernel and reduces the losses.
#include <algorithm>
#include <limits>

#include "bodies/ctc.h"
#include "rushlight/ops/_ctc_loss.h"
#include "rushlight/ops/clamp_min.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/ctc_loss.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/mean.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::composites {
namespace {

constexpr const char* kOp = "ctc_loss";

bool has_values(const Tensor& t) { return t.device().type != DeviceType::Meta; }

// Returns the lengths as an int64 tensor (batch) on the CPU, after checking that each is from 0 to `most`. Lengths on the
// meta device stay there.
Tensor lengths_of(const char* argument, const Tensor& given, int64_t batch, int64_t most) {
    RL_CHECK(is_integral(given.dtype()) && given.numel() == batch && given.dim() <= 1, throw_runtime,
             "%s(%s): needs %lld integers, got %s of shape %s", kOp, argument, (long long)batch,
             name(given.dtype()), to_string(given.sizes()).c_str());
    const int64_t flat[] = {batch};
    const Tensor seen = has_values(given) ? ops::to(given, Device()) : given;
    Tensor t = ops::contiguous(ops::reshape(ops::to(seen, DType::Int64), flat));
    if (!has_values(t)) return t;
    const int64_t* values = t.impl()->view().as<int64_t>();
    for (int64_t n = 0; n < batch; ++n)
        RL_CHECK(values[n] >= 0 && values[n] <= most, throw_runtime,
                 "%s(%s): entry %lld must be from 0 to %lld, got %lld", kOp, argument, (long long)n,
                 (long long)most, (long long)values[n]);
    return t;
}

// Returns a list of lengths as an int64 tensor on the CPU.
Tensor tensor_of(IntList lengths) {
    const int64_t sizes[] = {static_cast<int64_t>(lengths.size())};
    Tensor t = make_tensor(sizes, DType::Int64);
    std::copy(lengths.begin(), lengths.end(), t.impl()->view().as<int64_t>());
    return t;
}

// Returns the targets as a matrix (batch, longest) and checks the labels. `targets` has one row for each sample, or all
// targets joined. On the meta device, the length of the rows is the largest that targets of this shape can have.
Tensor rows_of(const Tensor& targets, const Tensor& lengths, int64_t classes, int64_t blank) {
    const int64_t batch = lengths.numel();
    const bool joined = targets.dim() == 1;
    if (!has_values(targets) || !has_values(lengths)) {
        RL_CHECK(joined || targets.size(0) == batch, throw_runtime,
                 "%s(targets): shape %s does not have one row for each of the %lld samples", kOp,
                 to_string(targets.sizes()).c_str(), (long long)batch);
        const int64_t sizes[] = {batch, targets.size(-1)};
        return make_tensor(sizes, DType::Int64, Device{DeviceType::Meta});
    }
    Tensor given = ops::contiguous(ops::to(ops::to(targets, Device()), DType::Int64));
    const int64_t* length = lengths.impl()->view().as<int64_t>();
    int64_t longest = 0, total = 0;
    for (int64_t n = 0; n < batch; ++n) longest = std::max(longest, length[n]), total += length[n];
    RL_CHECK(joined ? given.numel() == total : given.size(0) == batch && given.size(1) >= longest,
             throw_runtime,
             "%s(targets): shape %s does not match target_lengths\n"
             "hint: pass %lld rows of at least %lld labels, or all %lld labels in one row",
             kOp, to_string(targets.sizes()).c_str(), (long long)batch, (long long)longest, (long long)total);
    const int64_t sizes[] = {batch, longest};
    Tensor rows = make_tensor(sizes, DType::Int64);
    const int64_t* from = given.impl()->view().as<int64_t>();
    int64_t* to = rows.impl()->view().as<int64_t>();
    for (int64_t n = 0, start = 0; n < batch; start += joined ? length[n] : given.size(1), ++n)
        for (int64_t i = 0; i < longest; ++i) {
            const int64_t label = i < length[n] ? from[start + i] : blank;
            RL_CHECK(
                i >= length[n] || (label >= 0 && label < classes && label != blank), throw_runtime,
                "%s(targets): label %lld of target %lld must be from 0 to %lld and not the blank %lld, got %lld",
                kOp, (long long)i, (long long)n, (long long)classes - 1, (long long)blank, (long long)label);
            to[n * longest + i] = label;
        }
    return rows;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    RL_CHECK(log_probs.dim() == 2 || log_probs.dim() == 3, throw_runtime,
             "%s(log_probs): needs (time, batch, classes) or (time, classes), got shape %s", kOp,
             to_string(log_probs.sizes()).c_str());
    RL_CHECK(is_floating(log_probs.dtype()), throw_not_implemented, "%s: not defined for dtype %s", kOp,
             name(log_probs.dtype()));
    RL_CHECK(is_integral(targets.dtype()) && (targets.dim() == 1 || targets.dim() == 2), throw_runtime,
             "%s(targets): needs integers of shape (batch, longest) or (sum of lengths), got %s of shape %s",
             kOp, name(targets.dtype()), to_string(targets.sizes()).c_str());
    RL_CHECK(reduction >= 0 && reduction <= 2, throw_value,
             "%s(reduction): must be 0 (none), 1 (mean) or 2 (sum), got %lld", kOp, (long long)reduction);
    const bool batched = log_probs.dim() == 3;
    Tensor probs = batched ? log_probs : ops::unsqueeze(log_probs, 1);
    const int64_t classes = probs.size(2), batch = probs.size(1);
    RL_CHECK(blank >= 0 && blank < classes, throw_runtime,
             "%s(blank): class %lld is out of range for %lld classes", kOp, (long long)blank,
             (long long)classes);
    Tensor in = lengths_of("input_lengths", input_lengths, batch, probs.size(0));
    Tensor lengths = lengths_of("target_lengths", target_lengths, batch, std::numeric_limits<int32_t>::max());
    const Tensor rows = rows_of(targets, lengths, classes, blank);
    const Device device = log_probs.device();
    lengths = ops::to(lengths, device);
    Tensor losses =
        ops::_ctc_loss(probs, ops::to(rows, device), ops::to(in, device), lengths, blank, zero_infinity);
    if (reduction == 1) {
        Tensor each = ops::clamp_min(ops::to(lengths, log_probs.dtype()), Scalar(1));
        return ops::mean(ops::div(losses, each));
    }
    if (reduction == 2) return ops::sum(losses);
    return batched ? losses : ops::squeeze(losses, kInts<0>);
}
Tensor ctc_loss_lists(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                      IntList target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    return ops::ctc_loss(log_probs, targets, tensor_of(input_lengths), tensor_of(target_lengths), blank,
                         reduction, zero_infinity);
}

}  // namespace rushlight::composites
