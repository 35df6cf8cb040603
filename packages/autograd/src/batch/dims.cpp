// Rules of operators whose arguments name dimensions or sizes: dimensions are counted from the front and increased by
// one.
#include <algorithm>
#include <array>
#include <cstring>

#include "batch/call.h"
#include "batch/rules.h"
#include "rushlight/autograd/variable.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/median.h"
#include "rushlight/ops/nanmedian.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/stack.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"

namespace rushlight::autograd::batching {
namespace {

int64_t rank_of_dims(const Call& c) {
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 'i') return static_cast<int64_t>(c.ints(i).size());
    for (size_t i = 0; i < c.stack.size(); ++i) {
        if (c.row.arguments[i] == 't') return c.rank(i);
        if (c.row.arguments[i] == 'l')
            for (const Tensor& t : c.get<std::vector<Tensor>>(i)) return t.dim();
    }
    return 0;
}

std::vector<int64_t> with_batch(const Call& c, const std::vector<int64_t>& sizes) {
    std::vector<int64_t> all{c.size()};
    all.insert(all.end(), sizes.begin(), sizes.end());
    return all;
}

Tensor at_least_one(const Tensor& t) { return t.defined() && t.dim() == 1 ? ops::unsqueeze(t, 1) : t; }

// Reduces all elements of an example by an operator that takes one dimension: each example is reshaped to one row.
void flattened(Call& c, size_t dim_at) {
    bool keepdim = false;
    const int64_t rank = c.rank(0);
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 'k') {
            keepdim = c.get<bool>(i);
            c.stack[i] = false;
        }
    c.together();
    int64_t numel = 1;
    for (int64_t n : c.get<Tensor>(0).sizes().subspan(1)) numel *= n;
    c.stack[0] = ops::reshape(c.get<Tensor>(0), std::array<int64_t, 2>{c.size(), numel});
    c.stack[dim_at] = int64_t{1};
    c.run();
    if (keepdim)
        for (Value& v : c.stack)
            v = ops::view(*v.as<Tensor>(), with_batch(c, std::vector<int64_t>(static_cast<size_t>(rank), 1)));
    c.wrap();
}

// Runs the operator on each row. Used for empty rows, for which the operator's own errors and results apply.
void loop_over_rows(Call& c) {
    const Tensor all = c.get<Tensor>(0);
    std::vector<Tensor> rows;
    for (int64_t b = 0; b < c.size(); ++b) {
        c.stack = {Value(ops::select(all, 0, b))};
        c.run();
        rows.push_back(c.get<Tensor>(0));
    }
    c.give(ops::stack(rows, 0));
}

// Reduces all elements of an example for an operator without a `dim` argument, by another operator that has one.
template <class F>
void row_by_row(Call& c, F&& reduce) {
    c.together();
    int64_t numel = 1;
    for (int64_t n : c.get<Tensor>(0).sizes().subspan(1)) numel *= n;
    if (numel == 0) return loop_over_rows(c);
    c.give(reduce(ops::reshape(c.get<Tensor>(0), std::array<int64_t, 2>{c.size(), numel})));
}

}  // namespace

namespace rules {

void dims(Call& c) {
    const int64_t rank = rank_of_dims(c);
    const char* kinds = c.row.arguments;
    const Scalars scalars = c.row.scalars;
    RL_CHECK(rank > 0 || scalars != Scalars::Refused, throw_index, "%s(): a 0-d tensor has no dimension",
             c.op.name);
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (kinds[i] == 'd' && c.stack[i].is_none()) return flattened(c, i);
    // A tensor without dimensions is treated as having a dimension 0 of size 1.
    const bool scalar = rank == 0 && !std::strchr(kinds, 'n');
    const bool by_index = scalars == Scalars::ByIndex;
    const bool scalar_result = by_index ? c.rank(2) == 0 : scalar;
    if (scalar && scalars == Scalars::Counted && c.integer(1) == 0) c.stack[1] = int64_t{1};
    c.together();
    for (size_t i = 0; i < c.stack.size(); ++i) {
        Value& v = c.stack[i];
        switch (kinds[i]) {
            case 'd': v = wrap_dim(c.op.name, c.integer(i), rank) + 1; break;
            case 'n': v = wrap_dim(c.op.name, c.integer(i), rank + 1) + 1; break;
            case 'D':
            case 'A':
            case 'N': {
                const bool all = kinds[i] == 'A' || (kinds[i] == 'N' && v.is_none());
                std::vector<int64_t> list;
                if (const auto* given = v.as<std::vector<int64_t>>())
                    for (int64_t d : *given) list.push_back(wrap_dim(c.op.name, d, rank) + 1);
                if (list.empty() && all)
                    for (int64_t d = 0; d < std::max<int64_t>(rank, 1); ++d) list.push_back(d + 1);
                if (!v.is_none() || all) v = std::move(list);
                break;
            }
            case 's':
            case 'i': v = with_batch(c, c.ints(i)); break;
            case 't':
                if (c.is_tensor(i) && (scalar || by_index)) v = at_least_one(c.get<Tensor>(i));
                break;
            default: break;
        }
    }
    c.run();
    if (scalar_result && c.op.form != Form::InPlace)
        for (Value& v : c.stack)
            if (auto* t = v.as<Tensor>(); t && t->dim() == 2 && t->sizes()[1] == 1)
                v = ops::squeeze(*t, kInts<1>);
    if (scalar && scalars == Scalars::Windows) c.stack[0] = ops::squeeze(c.get<Tensor>(0), kInts<1>);
    c.wrap();
}

void reduce_max(Call& c) {
    row_by_row(c, [](const Tensor& t) { return ops::amax(t, kInts<1>, false); });
}
void reduce_min(Call& c) {
    row_by_row(c, [](const Tensor& t) { return ops::amin(t, kInts<1>, false); });
}
void reduce_median(Call& c) {
    row_by_row(c, [](const Tensor& t) { return std::get<0>(ops::median(t, 1, false)); });
}
void reduce_nanmedian(Call& c) {
    row_by_row(c, [](const Tensor& t) { return std::get<0>(ops::nanmedian(t, 1, false)); });
}

// --- views ---

void permute(Call& c) {
    const int64_t rank = c.rank(0);
    std::vector<int64_t> order{0};
    for (int64_t d : c.ints(1)) order.push_back(wrap_dim("permute", d, rank) + 1);
    RL_CHECK(static_cast<int64_t>(order.size()) == rank + 1, throw_runtime,
             "permute(dims): %s must name all %lld dimensions of shape %s", to_string(c.ints(1)).c_str(),
             (long long)rank, to_string(c.tensor(0).sizes()).c_str());
    c.unwrap();
    c.stack[1] = std::move(order);
    c.finish();
}

void transpose_matrix(Call& c) {
    const int64_t rank = c.rank(0);
    RL_CHECK(
        rank <= 2, throw_runtime,
        "t(): needs a tensor of at most 2 dimensions, got shape %s\nhint: use transpose(), or mT for batches",
        to_string(c.tensor(0).sizes()).c_str());
    const Tensor value = c.lower(c.tensor(0));
    c.give(rank == 2 ? ops::transpose(value, 1, 2) : ops::view(value, value.sizes()));
}

void squeeze_all(Call& c) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < c.rank(0); ++d)
        if (c.tensor(0).sizes()[static_cast<size_t>(d)] == 1) dims.push_back(d + 1);
    c.give(ops::squeeze(c.lower(c.tensor(0)), dims));
}

void view(Call& c) {
    c.stack[1] = with_batch(c, c.ints(1));
    c.unwrap();
    c.finish();
}

void view_as(Call& c) {
    const std::vector<int64_t> sizes = c.tensor(1).shape();
    c.give(ops::view(c.expanded(c.tensor(0)), with_batch(c, sizes)));
}

void expand(Call& c) {
    const std::vector<int64_t> sizes = c.is_tensor(1) ? c.tensor(1).shape() : c.ints(1);
    RL_CHECK(static_cast<int64_t>(sizes.size()) >= c.rank(0), throw_runtime,
             "%s: the tensor has %lld dimensions, but the new shape has only %zu: %s", c.op.name,
             (long long)c.rank(0), sizes.size(), to_string(sizes).c_str());
    const Tensor value = pad_rank(c.expanded(c.tensor(0)), static_cast<int64_t>(sizes.size()));
    c.give(ops::expand(value, with_batch(c, sizes)));
}

void as_strided(Call& c) {
    const Tensor value = c.lower(c.tensor(0));
    std::vector<int64_t> strides{value.strides()[0]};
    strides.insert(strides.end(), c.ints(2).begin(), c.ints(2).end());
    std::optional<int64_t> offset;
    if (!c.stack[3].is_none()) offset = c.integer(3);
    c.give(ops::as_strided(value, with_batch(c, c.ints(1)), strides, offset));
}

// In-place operators that change a tensor's shape. The batched tensor gets a new value, which is a view of the former
// value. The former value itself does not change, because it may be the user's tensor.
void reshape_in_place(Call& c) {
    const Tensor original = c.tensor(0);
    std::string name(c.op.name);
    const size_t dot = name.find('.');
    name.erase((dot == name.npos ? name.size() : dot) - 1, 1);
    const Operator* view = find_operator(name);
    RL_CHECK(view, throw_not_implemented, "%s: is not possible inside vmap", c.op.name);
    view->boxed(*view, kAllStages, c.stack);
    const Tensor made = c.get<Tensor>(0);
    Batched& b = meta_or_null(original.impl())->batched;
    b = batched(made);
    original.impl()->assign(Ref<Storage>::share(made.impl()->storage()), made.sizes(), made.strides(),
                            made.impl()->offset(), made.dtype());
    c.give_as_is(original);
}

// --- new tensors like another tensor ---

// new_zeros(input, size, ...) and similar operators.
void sized(Call& c) {
    for (size_t i = 0; i < c.stack.size(); ++i)
        if (c.row.arguments[i] == 's') c.stack[i] = with_batch(c, c.ints(i));
    c.unwrap();
    c.finish();
}

void cat(Call& c) {
    const std::vector<Tensor> given = c.get<std::vector<Tensor>>(0);
    // `cat` skips an empty vector, whatever the shapes of the other tensors; but the dtype of the result depends on
    // it.
    const auto is_empty = [](const Tensor& t) { return t.dim() == 1 && t.sizes()[0] == 0; };
    const bool all_empty = std::all_of(given.begin(), given.end(), is_empty);
    std::vector<Tensor> tensors;
    int64_t rank = 1;
    for (const Tensor& t : given) {
        const bool passed_over = is_empty(t) && !all_empty;
        if (!passed_over) rank = t.dim();
        tensors.push_back(passed_over ? ops::reshape(c.expanded(t), kInts<0>) : c.expanded(t));
    }
    // `cat` does not check the dimension if all tensors are skipped.
    const int64_t dim = all_empty ? 0 : wrap_dim("cat", c.integer(1), rank);
    c.give(ops::cat(tensors, dim + 1));
}

}  // namespace rules
}  // namespace rushlight::autograd::batching
