// The signatures of operators, parsed at run time.
#pragma once

#include <string_view>
#include <vector>

#include "rushlight/export.h"

namespace rushlight {

struct Operator;

struct SchemaArgument {
    // For example "Tensor?[]" or "int[]"; without write marks, the count of int[2] and the dots of varargs.
    std::string_view type;
    std::string_view name;
    bool keyword_only;
    bool written;  // whether the type has a write mark: Tensor(w!)
    int fill;  // the n of int[n], for which one int stands for n equal ints; 0 for other types
    std::string_view default_value;  // as Python writes it; "" if there is none
};

/// The parts of an Operator's schema. The names and types point into the text of the schema.
struct RL_API SchemaText {
    explicit SchemaText(const Operator& op);
    std::vector<SchemaArgument> arguments;
    std::vector<std::string_view> returns;  // types; empty for "()"
};

/// Whether the operator returns either a view of an argument or a copy, depending on strides, dtypes and other
/// arguments, as `contiguous`, `reshape` and `to` do.
RL_API bool may_return_view(const Operator& op);

}  // namespace rushlight
