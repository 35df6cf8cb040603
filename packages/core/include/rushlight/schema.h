// Operators' signatures, read at run time.
#pragma once

#include <string_view>
#include <vector>

#include "rushlight/export.h"

namespace rushlight {

struct Operator;

struct SchemaArgument {
    std::string_view
        type;  // "Tensor?[]", "int[]": without write marks, counts of int[2] and the dots of varargs
    std::string_view name;
    bool keyword_only;
    bool written;  // Tensor(w!)
    int fill;  // n of int[n], where one int stands for n equal ones; else 0
    std::string_view default_value;  // as Python writes it, "" where there is none
};

/// The parts of an Operator's schema; refers to its text.
struct RL_API SchemaText {
    explicit SchemaText(const Operator& op);
    std::vector<SchemaArgument> arguments;
    std::vector<std::string_view> returns;  // types; empty for "()"
};

}  // namespace rushlight
