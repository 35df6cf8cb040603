// Einstein's notation. Note [Einsum]
//
// A term is a tensor whose dimensions have labels. A label is a letter, or the number of a dimension of "...", counted from
// the last. Dimensions of size one are dropped first, so that broadcast dimensions are absent, and are restored at the end.
// Then pairs of terms are contracted, the pair with the smallest result first, each by one batched matrix product. Labels
// that both terms have and a later step needs are batch dimensions. Labels that no later step needs are summed over.
#include <algorithm>
#include <array>

#include "bodies/einsum.h"
#include "rushlight/ops/bmm.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"

namespace rushlight::composites {
namespace {

constexpr int kLetters = 52;  // 0 to 51 are the labels A-Z and a-z; labels from 52 are dimensions of "..."
constexpr int kLabels = kLetters + kMaxDims;
constexpr int kEllipsis = -1;

using Labels = std::vector<int>;

struct Term {
    Tensor tensor;
    Labels labels;

    bool has(int label) const { return std::ranges::find(labels, label) != labels.end(); }
};

[[noreturn, gnu::cold]] void fail(std::string_view equation, const std::string& why) {
    throw_runtime("einsum(equation): \"%.*s\": %s", static_cast<int>(equation.size()), equation.data(),
                  why.c_str());
}

char letter(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }
std::string spelled(int label) { return label < kLetters ? std::string(1, letter(label)) : "..."; }

// Returns the labels of an operand or of the result, with kEllipsis for "...".
Labels parse(std::string_view equation, std::string_view text) {
    Labels labels;
    bool dots = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == ' ') continue;
        if (c >= 'A' && c <= 'Z') labels.push_back(c - 'A');
        else if (c >= 'a' && c <= 'z') labels.push_back(c - 'a' + 26);
        else if (text.substr(i, 3) == "..." && !dots) {
            labels.push_back(kEllipsis);
            dots = true;
            i += 2;
        } else
            fail(equation,
                 c == '.' ? "\"...\" may occur once in each operand" : std::string("unexpected '") + c + "'");
    }
    return labels;
}

struct Equation {
    std::vector<Labels> operands;
    Labels result;
    bool has_result = false;
};

Equation parse(std::string_view text) {
    Equation e;
    std::string_view left = text;
    if (const size_t arrow = text.find("->"); arrow != text.npos) {
        e.result = parse(text, text.substr(arrow + 2));
        e.has_result = true;
        left = text.substr(0, arrow);
    }
    for (size_t begin = 0; begin <= left.size();) {
        const size_t end = std::min(left.find(',', begin), left.size());
        e.operands.push_back(parse(text, left.substr(begin, end - begin)));
        begin = end + 1;
    }
    return e;
}

// Replaces "..." by the labels of its `count` dimensions.
Labels with_dots(const Labels& labels, int count) {
    Labels result;
    for (int label : labels) {
        if (label != kEllipsis) result.push_back(label);
        else
            for (int d = count - 1; d >= 0; --d) result.push_back(kLetters + d);
    }
    return result;
}

int dots_of(std::string_view equation, const Labels& labels, const Tensor& t) {
    const auto named = std::ranges::count_if(labels, [](int label) { return label != kEllipsis; });
    const bool dots = static_cast<size_t>(named) != labels.size();
    if (dots ? t.dim() < named : t.dim() != named)
        fail(equation, "the operand of shape " + to_string(t.sizes()) + " must have " +
                           std::to_string(named) +
                           (dots ? " or more dimensions" : " dimensions, one for each letter"));
    return static_cast<int>(t.dim() - named);
}

// Takes the diagonals of letters that occur twice, records sizes, and drops dimensions of size one. A single operand keeps
// its dimensions of size one, because a sum over one element must be a new tensor and not a view.
Term make_term(std::string_view equation, const Tensor& operand, const Labels& labels, int64_t* sizes,
               bool single) {
    Term term{operand, {}};
    for (int label : labels) {
        const auto at = std::ranges::find(term.labels, label) - term.labels.begin();
        const auto here = static_cast<int64_t>(term.labels.size());
        if (at == here) {
            term.labels.push_back(label);
            continue;
        }
        if (term.tensor.sizes()[at] != term.tensor.sizes()[here])
            fail(equation, "'" + spelled(label) + "' has sizes " + std::to_string(term.tensor.sizes()[at]) +
                               " and " + std::to_string(term.tensor.sizes()[here]) + " in one operand");
        // `diagonal` moves the diagonal to the last dimension; it is moved back to the first occurrence of the letter.
        Tensor diagonal = ops::diagonal(term.tensor, 0, at, here);
        std::vector<int64_t> order;
        for (int64_t d = 0; d < diagonal.dim() - 1; ++d) order.push_back(d);
        order.insert(order.begin() + at, diagonal.dim() - 1);
        term.tensor = ops::permute(diagonal, order);
    }
    for (size_t d = 0; d < term.labels.size();) {
        const int label = term.labels[d];
        const int64_t size = term.tensor.sizes()[d];
        if (size != 1 && sizes[label] != 1 && sizes[label] != size)
            fail(equation, "'" + spelled(label) + "' has sizes " + std::to_string(sizes[label]) + " and " +
                               std::to_string(size));
        if (size != 1 || single) {
            sizes[label] = size;
            ++d;
        } else {
            term.tensor = ops::select(term.tensor, static_cast<int64_t>(d), 0);
            term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(d));
        }
    }
    return term;
}

// Sums over the labels that are not needed. Integers are summed in `dtype`.
void sum_out(Term& term, const auto& needed, std::optional<DType> dtype) {
    std::vector<int64_t> along;
    Labels kept;
    for (size_t d = 0; d < term.labels.size(); ++d) {
        if (needed(term.labels[d])) kept.push_back(term.labels[d]);
        else along.push_back(static_cast<int64_t>(d));
    }
    if (along.empty()) return;
    term.tensor = ops::sum(term.tensor, along, false, dtype);
    term.labels = std::move(kept);
}

int64_t size_of(const Labels& labels, const int64_t* sizes) {
    int64_t n = 1;
    for (int label : labels) n *= sizes[label];
    return n;
}

Tensor arranged(const Term& term, std::initializer_list<const Labels*> groups) {
    std::vector<int64_t> order;
    for (const Labels* group : groups)
        for (int label : *group) order.push_back(std::ranges::find(term.labels, label) - term.labels.begin());
    return ops::permute(term.tensor, order);
}

// Returns the term's tensor with a dimension of size one for each label of `all` that the term lacks.
Tensor spread(const Term& term, const Labels& all, const int64_t* sizes) {
    Labels own;
    std::vector<int64_t> shape;
    for (int label : all) {
        const bool has = term.has(label);
        if (has) own.push_back(label);
        shape.push_back(has ? sizes[label] : 1);
    }
    return ops::reshape(arranged(term, {&own}), shape);
}

// The dtype in which a term is summed before it is multiplied. Small integers do not overflow if the product's dtype is
// wider.
DType summed(DType t, DType other) {
    const auto is_whole = [](DType x) { return is_integral(x) || x == DType::Bool; };
    if (t == other || !is_whole(t)) return t;
    return is_whole(other) ? promote(t, other) : DType::Int64;
}

Term contract(Term a, Term b, const int64_t* sizes, const auto& needed) {
    const DType of_a = summed(a.tensor.dtype(), b.tensor.dtype()),
                of_b = summed(b.tensor.dtype(), a.tensor.dtype());
    sum_out(a, [&](int label) { return needed(label) || b.has(label); }, of_a);
    sum_out(b, [&](int label) { return needed(label) || a.has(label); }, of_b);
    Labels batch, inner, left, right;
    for (int label : a.labels) (!b.has(label) ? left : needed(label) ? batch : inner).push_back(label);
    for (int label : b.labels)
        if (!a.has(label)) right.push_back(label);
    Term result{{}, batch};
    result.labels.insert(result.labels.end(), left.begin(), left.end());
    result.labels.insert(result.labels.end(), right.begin(), right.end());
    if (inner.empty()) {
        result.tensor = ops::mul(spread(a, result.labels, sizes), spread(b, result.labels, sizes));
        return result;
    }
    const int64_t n = size_of(batch, sizes), rows = size_of(left, sizes), depth = size_of(inner, sizes);
    const int64_t columns = size_of(right, sizes);
    const int64_t left_sizes[] = {n, rows, depth}, right_sizes[] = {n, depth, columns};
    const bool flat = batch.empty();  // one product, without a dimension for the batch
    Tensor x = ops::reshape(arranged(a, {&batch, &left, &inner}), IntList(left_sizes).subspan(flat ? 1 : 0));
    Tensor y =
        ops::reshape(arranged(b, {&batch, &inner, &right}), IntList(right_sizes).subspan(flat ? 1 : 0));
    if (const DType common = promote(x.dtype(), y.dtype()); x.dtype() != y.dtype()) {
        x = ops::to(x, common);
        y = ops::to(y, common);
    }
    std::vector<int64_t> shape;
    for (int label : result.labels) shape.push_back(sizes[label]);
    result.tensor = ops::reshape(flat ? ops::mm(x, y) : ops::bmm(x, y), shape);
    return result;
}

// Returns the labels of the result if the equation does not give them.
Labels implied(const std::vector<Labels>& operands) {
    std::array<int, kLetters> count{};
    for (const Labels& labels : operands)
        for (int label : labels)
            if (label >= 0) ++count[static_cast<size_t>(label)];
    Labels result{kEllipsis};
    for (int label = 0; label < kLetters; ++label)
        if (count[static_cast<size_t>(label)] == 1) result.push_back(label);
    return result;
}

void check_result(std::string_view equation, const Equation& e) {
    for (auto it = e.result.begin(); it != e.result.end(); ++it) {
        if (std::find(e.result.begin(), it, *it) != it)
            fail(equation, "'" + spelled(*it) + "' occurs twice in the result");
        const bool known = *it == kEllipsis || std::ranges::any_of(e.operands, [&](const Labels& labels) {
            return std::ranges::find(labels, *it) != labels.end();
        });
        if (!known) fail(equation, "'" + spelled(*it) + "' of the result does not occur in any operand");
    }
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList operands) {
    RL_CHECK(!operands.empty(), throw_runtime, "einsum(operands): needs at least one tensor, got none");
    Equation e = parse(equation);
    if (e.operands.size() != operands.size())
        fail(equation, std::to_string(e.operands.size()) + " operands are named, but " +
                           std::to_string(operands.size()) + " are given");
    if (e.has_result) check_result(equation, e);
    else e.result = implied(e.operands);

    std::array<int64_t, kLabels> sizes;
    sizes.fill(1);
    std::vector<Term> terms;
    int dots = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
        const int own = dots_of(equation, e.operands[i], operands[i]);
        dots = std::max(dots, own);
        terms.push_back(make_term(equation, operands[i], with_dots(e.operands[i], own), sizes.data(),
                                  operands.size() == 1));
    }
    const Labels result = with_dots(e.result, dots);
    auto in_result = [&](int label) { return std::ranges::find(result, label) != result.end(); };

    while (terms.size() > 1) {
        size_t first = 0, second = 1;
        double least = 0;
        for (size_t i = 0; terms.size() > 2 && i < terms.size(); ++i) {
            for (size_t j = i + 1; j < terms.size(); ++j) {
                // The number of elements of the result, minus the elements of the two terms that it replaces.
                double cost = 1;
                for (int label = 0; label < kLabels; ++label) {
                    if (!terms[i].has(label) && !terms[j].has(label)) continue;
                    bool needed = in_result(label);
                    for (size_t k = 0; k < terms.size() && !needed; ++k)
                        needed = k != i && k != j && terms[k].has(label);
                    if (needed) cost *= static_cast<double>(sizes[static_cast<size_t>(label)]);
                }
                cost -= static_cast<double>(terms[i].tensor.numel()) +
                        static_cast<double>(terms[j].tensor.numel());
                if ((i == 0 && j == 1) || cost < least) {
                    least = cost;
                    first = i;
                    second = j;
                }
            }
        }
        Term a = std::move(terms[first]), b = std::move(terms[second]);
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(first));
        auto needed = [&](int label) {
            return in_result(label) ||
                   std::ranges::any_of(terms, [&](const Term& t) { return t.has(label); });
        };
        // The last product has the columns of its second factor in its last dimension. Choose the factor that has the last
        // label of the result, so that the result is contiguous.
        if (terms.empty() && !result.empty() && !b.has(result.back())) std::swap(a, b);
        Term made = contract(std::move(a), std::move(b), sizes.data(), needed);
        terms.insert(terms.begin(), std::move(made));
    }
    sum_out(terms[0], in_result, std::nullopt);
    return spread(terms[0], result, sizes.data());
}

}  // namespace rushlight::composites
