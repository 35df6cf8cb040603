// Strict mode: a stage that raises an error where operands would be broadcast or promoted.
//
// Note [Strict mode]
// Strict mode is a bit of DispatchState::on, which every call checks anyway. So it costs nothing in threads that have
// not enabled it. The stage checks an operator that was called from outside, and then switches itself off for the
// operators that this operator calls.
#include <string>

#include "rushlight/schema.h"
#include "rushlight/strict.h"
#include "rushlight/value.h"
#include "tensor/promotion.h"

namespace rushlight {
namespace {

// The number of binary digits that a dtype holds exactly, and other properties of the dtype.
struct Digits {
    int count;
    bool negative, fraction;
    int exponent;  // the largest exponent
};
Digits digits(DType t) {
    switch (t) {
        case DType::Bool: return {1, false, false, 0};
        case DType::UInt8: return {8, false, false, 0};
        case DType::UInt16: return {16, false, false, 0};
        case DType::UInt32: return {32, false, false, 0};
        case DType::UInt64: return {64, false, false, 0};
        case DType::Int8: return {7, true, false, 0};
        case DType::Int16: return {15, true, false, 0};
        case DType::Int32: return {31, true, false, 0};
        case DType::Int64: return {63, true, false, 0};
        case DType::Float16: return {11, true, true, 15};
        case DType::BFloat16: return {8, true, true, 127};
        case DType::Float8E4M3FN: return {4, true, true, 8};
        case DType::Float8E5M2: return {3, true, true, 15};
        case DType::Float8E4M3FNUZ: return {4, true, true, 7};
        case DType::Float8E5M2FNUZ: return {3, true, true, 15};
        case DType::Float8E8M0FNU: return {1, false, true, 127};
        case DType::Float32:
        case DType::Complex64: return {24, true, true, 127};
        default: return {53, true, true, 1023};
    }
}

// Whether `to` holds every value of `from`.
bool holds(DType to, DType from) {
    if (to == from) return true;
    if (is_complex(from) && !is_complex(to)) return false;
    const Digits a = digits(from), b = digits(to);
    return a.count <= b.count && (b.negative || !a.negative) && (b.fraction || !a.fraction) &&
           a.exponent <= b.exponent;
}

// The name of argument `n`.
std::string argument_name(const Operator& op, size_t n) {
    return std::string(SchemaText(op).arguments[n].name);
}

void check(const Operator& op, const Stack& stack) {
    const Tensor* first = nullptr;
    size_t first_at = 0;
    std::vector<TensorOrScalar> operands;
    // A condition or a mask selects elements and takes no part in promotion.
    auto selects = [](std::string_view name) { return name == "condition" || name == "mask"; };
    for (size_t i = 0; i < stack.size(); ++i) {
        const auto* t = stack[i].as<Tensor>();
        if (t && !selects(argument_name(op, i))) operands.emplace_back(*t);
        if (!t || t->dim() == 0) continue;
        if (!first) {
            first = t;
            first_at = i;
            continue;
        }
        if (t->dim() == first->dim()) continue;
        const bool shorter = t->dim() < first->dim();
        const Tensor& many = shorter ? *first : *t;
        const std::string one = argument_name(op, first_at), other = argument_name(op, i);
        const std::string& lower = shorter ? other : one;
        throw_runtime(
            "%s(%s, %s): strict mode: shapes %s and %s have different numbers of dimensions\n"
            "hint: insert the missing dimensions explicitly, as in %s.unsqueeze(0) or %s.expand(%s)",
            op.name, one.c_str(), other.c_str(), to_string(first->sizes()).c_str(),
            to_string(t->sizes()).c_str(), lower.c_str(), lower.c_str(), to_string(many.sizes()).c_str());
    }
    if (operands.size() < 2) return;
    const DType joint = result_dtype(operands);
    if (const DType written = operands[0].tensor().dtype();
        op.form == Form::InPlace && !holds(written, joint))
        throw_runtime(
            "%s: strict mode: a result of dtype %s is written to a tensor of dtype %s\n"
            "hint: convert the other operand if the loss of information is intended, as in %s.to(%s)",
            op.name, name(joint), name(written), argument_name(op, 1).c_str(), name(written));
    for (size_t i = 0; i < stack.size(); ++i) {
        const auto* t = stack[i].as<Tensor>();
        if (!t || selects(argument_name(op, i)) || holds(joint, t->dtype())) continue;
        const std::string argument = argument_name(op, i);
        throw_runtime(
            "%s(%s): strict mode: not every value of dtype %s is representable in %s, the dtype to which the "
            "operands are promoted\n"
            "hint: convert the argument if the loss of information is intended, as in %s.to(%s)",
            op.name, argument.c_str(), name(t->dtype()), name(joint), argument.c_str(), name(joint));
    }
}

void strict(const Operator& op, StageMask rest, Stack& stack) {
    if (op.broadcasts) check(op, stack);
    StagesOff inside(bit(Stage::Strict));
    op.boxed(op, rest, stack);
}

}  // namespace

bool set_strict(bool on) {
    static const bool installed = (install_fallback(Stage::Strict, strict), true);
    static_cast<void>(installed);
    const bool before = is_strict();
    if (on) dispatch_state.on |= bit(Stage::Strict);
    else dispatch_state.on &= ~bit(Stage::Strict);
    return before;
}

bool is_strict() { return dispatch_state.on & bit(Stage::Strict); }

}  // namespace rushlight
