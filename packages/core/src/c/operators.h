// Operators for calls from C: by name, with values whose kinds and defaults the schema defines.
#pragma once

#include <string_view>
#include <vector>

#include "rushlight/value.h"

namespace rushlight::c {

enum class ArgumentKind : uint8_t { Tensor, TensorList, Integers, Other };

struct SignatureArgument {
    std::string_view name, type;  // as in the schema
    ArgumentKind kind;
    bool optional;  // accepts None, as the argument or as an element of its list
    int fill;
};

/// A schema, parsed once.
struct Signature {
    std::vector<SignatureArgument> arguments;
    size_t required;  // number of arguments up to and including the last one without a default
    std::vector<Value> defaults;  // the defaults of the arguments after the required ones
    size_t results;
};

struct NamedOperator {
    const Operator* op;
    const Signature* signature;
};

/// Finds the operator of a given name. If there is none, raises a RuntimeError that lists similar names.
NamedOperator operator_named(const char* name);
const Signature& signature_of(size_t index);

}  // namespace rushlight::c
