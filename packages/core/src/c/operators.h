// Operators as C calls them: by name, with values whose kinds and defaults the schema defines.
#pragma once

#include <string_view>
#include <vector>

#include "rushlight/value.h"

namespace rushlight::c {

enum class ArgumentKind : uint8_t { Tensor, TensorList, Integers, Other };

struct SignatureArgument {
    std::string_view name, type;  // of the schema
    ArgumentKind kind;
    bool optional;  // takes None, alone or in its list
    int fill;
};

/// A schema, read once.
struct Signature {
    std::vector<SignatureArgument> arguments;
    size_t required;  // arguments up to the last that has no default
    std::vector<Value> defaults;  // of those after them
    size_t results;
};

struct NamedOperator {
    const Operator* op;
    const Signature* signature;
};

/// RuntimeError, with similar names, where there is none.
NamedOperator operator_named(const char* name);
const Signature& signature_of(size_t index);

}  // namespace rushlight::c
