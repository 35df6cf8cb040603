// Writes a graph as readable text, which parse.cpp reads.
#include "text.h"

#include <algorithm>
#include <cstdio>

#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"

namespace rushlight::graph {

// --- functions of text.h ---

std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\'' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\x%02x", byte);
            out += escape;
        } else {
            out += c;
        }
    }
    return out + "'";
}

bool is_identifier(std::string_view text) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, fits);
}

std::string symbol_text(const std::string& name) {
    static constexpr std::string_view kWords[] = {"None", "True", "False", "nan", "inf", "complex", "return"};
    return is_identifier(name) && std::ranges::find(kWords, name) == std::end(kWords) ? name : quoted(name);
}

bool is_plain(std::string_view text) {
    const auto is_printed = [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\'';
    };
    const bool has_note = text.find(" in ") != text.npos || text.find(';') != text.npos;
    return !text.empty() && std::ranges::all_of(text, is_printed) && !has_note && text[0] != ' ' &&
           text.back() != ' ' && text != "in" && !text.starts_with("in ") && !text.starts_with("writes ") &&
           !text.starts_with("random") && !text.starts_with("no_grad") && !text.starts_with("enable_grad");
}

namespace {

std::string name_text(const std::string& name) { return is_plain(name) ? name : quoted(name); }

std::string sizes_text(const std::vector<int64_t>& sizes) {
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
    return text + "]";
}

// Returns the expression that replaces an integer, or the integer.
std::string moving_text(const Graph& graph, const std::vector<Moving>& moving, uint32_t position,
                        uint32_t item, int64_t integer) {
    for (const Moving& m : moving)
        if (m.position == position && m.item == item) return to_text(graph, graph.expressions[m.expression]);
    return std::to_string(integer);
}

}  // namespace

std::string type_text(const Graph& graph, ValueId id) {
    const auto& [type, memory, moving] = graph.values[id];
    std::string text = std::string(name(type.dtype)) + "[";
    for (uint32_t d = 0; d < type.sizes.size(); ++d)
        text += (d ? ", " : "") + moving_text(graph, moving, 0, d, type.sizes[d]);
    text += "]";
    if (type.device.type != DeviceType::CPU) text += "@" + name(type.device);
    return text;
}

namespace {

std::string value_name(ValueId id) { return "%" + std::to_string(id); }

// Returns a value with its type, such as "%3: float32[2] at %1", where %1 is the first value with the same memory.
std::string value_text(const Graph& graph, ValueId id) {
    const ValueId memory = graph.values[id].memory;
    return value_name(id) + ": " + type_text(graph, id) + (memory == id ? "" : " at " + value_name(memory));
}

struct ArgumentText {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
        char text[32];
        for (int digits = 1; digits <= 17; ++digits) {  // find the shortest text for this number
            std::snprintf(text, sizeof text, "%.*g", digits, v);
            if (std::strtod(text, nullptr) == v) break;
        }
        std::string shown = text;
        return shown.find_first_of(".ein") == shown.npos ? shown + ".0" : shown;
    }
    std::string operator()(Complex<double> v) const {
        return "complex(" + (*this)(v.re) + ", " + (*this)(v.im) + ")";
    }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(DType v) const { return name(v); }
    std::string operator()(Device v) const { return "device(" + quoted(name(v)) + ")"; }
    std::string operator()(Use v) const { return value_name(v.value); }
    std::string operator()(const std::vector<int64_t>& v) const { return sizes_text(v); }
    std::string operator()(const std::vector<std::optional<ValueId>>& v) const {
        std::string text = "[";
        for (size_t i = 0; i < v.size(); ++i) {
            text += i ? ", " : "";
            text += v[i] ? value_name(*v[i]) : "None";
        }
        return text + "]";
    }
};

std::string result_text(const Graph& graph, const Result& result) {
    if (auto* one = std::get_if<ValueId>(&result)) return value_text(graph, *one);
    if (auto* list = std::get_if<std::vector<ValueId>>(&result)) {
        std::string text = "[";
        for (size_t i = 0; i < list->size(); ++i)
            text += (i ? ", " : "") + result_text(graph, Result((*list)[i]));
        return text + "]";
    }
    return "_";
}

}  // namespace

std::string argument_text(const Graph& graph, const Node& node, uint32_t position) {
    const Argument& argument = node.arguments[position];
    if (auto* number = std::get_if<int64_t>(&argument))
        return moving_text(graph, node.moving, position, 0, *number);
    auto* list = std::get_if<std::vector<int64_t>>(&argument);
    if (!list) return std::visit(ArgumentText{}, argument);
    std::string text = "[";
    for (uint32_t i = 0; i < list->size(); ++i)
        text += (i ? ", " : "") + moving_text(graph, node.moving, position, i, (*list)[i]);
    return text + "]";
}

std::string names_text(const std::vector<ValueId>& ids) {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) text += (i ? ", " : "") + value_name(ids[i]);
    return text;
}

namespace {

std::string note_text(const Graph& graph, const Node& node, std::string note) {
    const auto add = [&](const char* word) { note += (note.empty() ? " " : ", ") + std::string(word); };
    if (node.random) add("random");
    if (node.gradients) add(*node.gradients ? "enable_grad" : "no_grad");
    const std::string& line = graph.texts[node.line];
    const std::string& module = graph.texts[node.module];
    if (!line.empty()) note += (note.empty() ? " " : "; ") + name_text(line);
    if (!module.empty()) note += (line.empty() && !note.empty() ? "; in " : " in ") + name_text(module);
    return note.empty() ? "" : "  #" + note;
}

}  // namespace

// The format is described in text.h.
std::string symbol_line(const Symbol& symbol) {
    const std::string shown = symbol_text(symbol.name);
    std::string text = shown + ": " + std::to_string(symbol.least) + " to " + std::to_string(symbol.most) +
                       "  # " + std::to_string(symbol.example) + " in the capture;";
    for (size_t i = 0; i < symbol.occurrences.size(); ++i) {
        const auto& [input, dim, scale, offset] = symbol.occurrences[i];
        text += (i ? ", input " : " input ") + std::to_string(input) + "[" + std::to_string(dim) + "]";
        if (scale == 1 && offset == 0) continue;
        text +=
            " = " + std::to_string(scale) + "*" + shown + (offset < 0 ? "" : "+") + std::to_string(offset);
    }
    return text;
}

namespace {

std::string node_text(const Graph& graph, const Node& node, const std::string& indent);

// Returns the blocks of control flow as text, each with the names and types of its inputs.
std::string blocks_text(const Graph& graph, const Node& node, const std::string& indent) {
    std::string text;
    for (const Block& block : node.blocks) {
        text += indent + "block(";
        for (size_t i = 0; i < block.inputs.size(); ++i)
            text += (i ? ", " : "") + result_text(graph, block.inputs[i]);
        text += "):\n";
        for (const Node& inner : block.nodes) text += node_text(graph, inner, indent + "  ") + "\n";
        text += indent + "  return " + names_text(block.outputs) + "\n";
    }
    return text;
}

std::string node_text(const Graph& graph, const Node& node, const std::string& indent) {
    std::string text = indent;
    for (size_t i = 0; i < node.results.size(); ++i)
        text += (i ? ", " : "") + result_text(graph, node.results[i]);
    text += node.results.empty() ? "" : " = ";
    if (node.control != ControlFlow::None) {
        text += std::string(name(node.control)) + "(";
        for (size_t i = 0; i < node.arguments.size(); ++i)
            text += (i ? ", " : "") + std::visit(ArgumentText{}, node.arguments[i]);
        return text + ") {" + note_text(graph, node, "") + "\n" + blocks_text(graph, node, indent + "  ") +
               indent + "}";
    }
    const OperatorRef& ref = graph.operators[node.op];
    text += ref.name + "(";
    const Operator* op = find_operator(ref.name);
    const SchemaText schema(*op);
    for (size_t i = 0; i < node.arguments.size(); ++i) {
        text += i ? ", " : "";
        const bool is_tensor = schema.arguments[i].type.starts_with("Tensor");
        if (!is_tensor) text += std::string(schema.arguments[i].name) + "=";
        text += argument_text(graph, node, static_cast<uint32_t>(i));
    }
    text += ")";
    std::string note;
    if (!node.writes.empty()) {
        note += " writes";
        for (uint32_t position : node.writes) note += " " + std::string(schema.arguments[position].name);
    }
    return text + note_text(graph, node, note);
}

}  // namespace

std::string node_text(const Graph& graph, const Node& node) {
    const std::string text = node_text(graph, node, "");
    return text.substr(0, text.find('\n'));
}

std::string to_text(const TensorType& type) {
    std::string text = name(type.dtype) + sizes_text(type.sizes);
    if (type.device.type != DeviceType::CPU) text += "@" + name(type.device);
    return text;
}

std::string to_text(const Graph& graph) {
    std::string text = "program(";
    if (graph.below_gradients) text += std::string("  # ") + kBelowNote;
    text += "\n";
    for (const Input& input : graph.inputs)
        text += "  " + value_text(graph, input.value) + ",  # " + name_text(input.name) + "\n";
    text += ")\n";
    for (const Symbol& symbol : graph.symbols) text += "  " + symbol_line(symbol) + "\n";
    for (const Constant& constant : graph.constants) {
        text += "  " + value_text(graph, constant.value) + " = " +
                kConstantKinds[static_cast<int>(constant.kind)] + "(" + quoted(constant.name) + ")";
        std::string note = constant.written ? " written" : "";
        if (!constant.strides.empty())
            note += (note.empty() ? " strides " : ", strides ") + sizes_text(constant.strides);
        text += (note.empty() ? "" : "  #" + note) + "\n";
    }
    for (const Node& node : graph.nodes) text += node_text(graph, node, "  ") + "\n";
    const std::string outputs = names_text(graph.outputs);
    return text + "  return" + (outputs.empty() ? "" : " ") + outputs + "\n";
}

}  // namespace rushlight::graph
