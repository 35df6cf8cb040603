// Rules of operators on samples: the dimensions of the examples and of the samples are joined.
#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/ops/_attention.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/unsqueeze.h"

namespace rushlight::autograd::batching {
namespace {

// Operators with `spatial` dimensions take (N, C, ...) or (C, ...). In the second case each example is one sample.
void images(Call& c, int64_t spatial) {
    RL_CHECK(c.rank(0) == spatial + 1 || c.rank(0) == spatial + 2, throw_runtime,
             "%s(input): needs %lld or %lld dimensions, got shape %s", c.op.name, (long long)spatial + 1,
             (long long)spatial + 2, to_string(c.tensor(0).sizes()).c_str());
    bool folded = false;
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 't' && c.is_tensor(i)) folded |= c.rank(i) == spatial + 2;
    const int64_t n = c.size(), each = c.rank(0) > 0 ? c.tensor(0).sizes()[0] : 1;
    c.together();
    for (size_t i = 0; i < c.stack.size(); ++i) {
        Value& v = c.stack[i];
        if (c.row.arguments[i] == 't' && v.as<Tensor>() && folded) v = fold(*v.as<Tensor>());
        if (c.row.arguments[i] == 'i') {
            std::vector<int64_t> sizes = c.ints(i);
            if (folded) sizes[0] *= n;
            else sizes.insert(sizes.begin(), n);
            v = std::move(sizes);
        }
    }
    c.run();
    if (folded)
        for (Value& v : c.stack)
            if (auto* t = v.as<Tensor>()) v = unfold(*t, n, each);
    c.wrap();
}

}  // namespace

namespace rules {

void images1(Call& c) { images(c, 1); }
void images2(Call& c) { images(c, 2); }
void images3(Call& c) { images(c, 3); }

// Operators whose tensor arguments all have the samples along their first dimension.
void samples(Call& c) {
    const int64_t n = c.size(), each = c.tensor(0).sizes()[0];
    c.together();
    for (Value& v : c.stack)
        if (auto* t = v.as<Tensor>()) v = fold(*t);
    c.run();
    for (Value& v : c.stack)
        if (auto* t = v.as<Tensor>()) v = unfold(*t, n, each);
    c.wrap();
}

// Attention with the arguments (query, key, value, attn_mask, kept, ...). Tensors have the shape (N, heads, length,
// size); attn_mask broadcasts.
void attention(Call& c) {
    const int64_t n = c.size();
    const int64_t mask_at = c.op.name == std::string_view("_attention_backward") ? 4 : 3;
    const Tensor mask = c.tensor(static_cast<size_t>(mask_at));
    const int64_t samples = c.tensor(0).sizes()[0];
    const bool rows = c.is_batched(mask);
    c.together();
    for (size_t i = 0; i < c.stack.size(); ++i) {
        auto* t = c.stack[i].as<Tensor>();
        if (!t || !t->defined() || static_cast<int64_t>(i) == mask_at) continue;
        c.stack[i] = fold(*t);
    }
    if (mask.defined()) {
        if (!rows && mask.dim() < 4) {
            c.stack[static_cast<size_t>(mask_at)] = mask;
        } else {
            Tensor all = pad_rank(c.get<Tensor>(static_cast<size_t>(mask_at)), 4);
            std::vector<int64_t> sizes = all.shape();
            sizes[1] = samples;
            c.stack[static_cast<size_t>(mask_at)] = fold(ops::expand(all, sizes));
        }
    }
    c.run();
    for (Value& v : c.stack)
        if (auto* t = v.as<Tensor>()) v = unfold(*t, n, samples);
    c.wrap();
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
