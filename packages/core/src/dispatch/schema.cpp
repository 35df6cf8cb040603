#include "rushlight/schema.h"

#include "rushlight/dispatch.h"

namespace rushlight {
namespace {

// Splits text such as "Tensor[] tensors, int dim=0" at the commas outside of brackets.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && (text[i] == '(' || text[i] == '[')) ++depth;
        if (i < text.size() && (text[i] == ')' || text[i] == ']')) --depth;
        if (i < text.size() && (text[i] != ',' || depth)) continue;
        if (i > begin) parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
        while (begin < text.size() && text[begin] == ' ') ++begin;
    }
    return parts;
}

// Returns the type without the count of int[2], the dots of varargs and the marks of written arguments. The generator's
// table contains types in this form.
std::string_view plain_type(std::string_view type) {
    if (type.starts_with("Tensor(w!)")) return type.ends_with("[]") ? "Tensor[]" : "Tensor";
    if (type.starts_with("int[")) return type.find('?') == std::string_view::npos ? "int[]" : "int[]?";
    if (type.ends_with("...")) type.remove_suffix(3);
    return type;
}

// Returns n of "int[n]", or 0 for other types.
int count_of(std::string_view type) {
    int count = 0;
    if (type.starts_with("int["))
        for (char c : type.substr(4)) {
            if (c < '0' || c > '9') break;
            count = 10 * count + (c - '0');
        }
    return count;
}

}  // namespace

SchemaText::SchemaText(const Operator& op) {
    const std::string_view text = op.schema;
    const size_t arrow = text.rfind(" -> ");
    const size_t open = text.find('(');
    bool keyword_only = false;
    for (std::string_view part : split(text.substr(open + 1, arrow - open - 2))) {
        if (part == "*") {
            keyword_only = true;
            continue;
        }
        const size_t equals = part.find('=');
        const std::string_view value = equals == part.npos ? "" : part.substr(equals + 1);
        part = part.substr(0, equals);
        const size_t space = part.rfind(' ');
        const std::string_view type = part.substr(0, space);
        arguments.push_back({plain_type(type), part.substr(space + 1), keyword_only,
                             type.starts_with("Tensor(w!)"), count_of(type), value});
    }
    const std::string_view result = text.substr(arrow + 4);
    if (result == "()") return;
    if (result.starts_with('(')) {
        for (std::string_view part : split(result.substr(1, result.size() - 2)))
            returns.push_back(part.substr(0, part.find(' ')));
    } else {
        returns.push_back(result.substr(0, result.find(' ')));
    }
}

}  // namespace rushlight
