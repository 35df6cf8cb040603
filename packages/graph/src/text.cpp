// A graph as text for people.
#include <cstdio>

#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"

namespace rushlight::graph {
namespace {

std::string sizes_text(const std::vector<int64_t>& sizes) {
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
    return text + "]";
}

// The expression in place of an integer, or the integer.
std::string moving_text(const Graph& graph, const std::vector<Moving>& moving, uint32_t position,
                        uint32_t item, int64_t integer) {
    for (const Moving& m : moving)
        if (m.position == position && m.item == item) return to_text(graph, graph.expressions[m.expression]);
    return std::to_string(integer);
}

std::string type_text(const Graph& graph, ValueId id) {
    const auto& [type, memory, moving] = graph.values[id];
    if (moving.empty()) return to_text(type);
    std::string text = std::string(name(type.dtype)) + "[";
    for (uint32_t d = 0; d < type.sizes.size(); ++d)
        text += (d ? ", " : "") + moving_text(graph, moving, 0, d, type.sizes[d]);
    return text + "]";
}

std::string value_name(ValueId id) { return "%" + std::to_string(id); }

struct ArgumentText {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
        char text[32];
        for (int digits = 1; digits <= 17; ++digits) {  // the shortest that means the same number
            std::snprintf(text, sizeof text, "%.*g", digits, v);
            if (std::strtod(text, nullptr) == v) break;
        }
        std::string shown = text;
        return shown.find_first_of(".ein") == shown.npos ? shown + ".0" : shown;
    }
    std::string operator()(Complex<double> v) const {
        return "complex(" + (*this)(v.re) + ", " + (*this)(v.im) + ")";
    }
    std::string operator()(const std::string& v) const { return "'" + v + "'"; }
    std::string operator()(DType v) const { return name(v); }
    std::string operator()(Device v) const { return "'" + name(v) + "'"; }
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
    if (auto* one = std::get_if<ValueId>(&result)) return value_name(*one) + ": " + type_text(graph, *one);
    if (auto* list = std::get_if<std::vector<ValueId>>(&result)) {
        std::string text = "[";
        for (size_t i = 0; i < list->size(); ++i)
            text += (i ? ", " : "") + result_text(graph, Result((*list)[i]));
        return text + "]";
    }
    return "_";
}

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

const char* kind_name(ConstantKind kind) {
    switch (kind) {
        case ConstantKind::Parameter: return "parameter";
        case ConstantKind::Buffer: return "buffer";
        case ConstantKind::Constant: break;
    }
    return "constant";
}

std::string names_text(const std::vector<ValueId>& ids) {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i) text += (i ? ", " : "") + value_name(ids[i]);
    return text;
}

std::string note_text(const Graph& graph, const Node& node, std::string note) {
    if (node.random) note += note.empty() ? " random" : ", random";
    const std::string& line = graph.texts[node.line];
    const std::string& module = graph.texts[node.module];
    if (!line.empty()) note += (note.empty() ? " " : "; ") + line;
    if (!module.empty()) note += " in " + module;
    return note.empty() ? "" : "  #" + note;
}

std::string node_text(const Graph& graph, const Node& node, const std::string& indent);

// The blocks of control flow, each with the names and types of its inputs.
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

std::string to_text(const TensorType& type) {
    std::string text = name(type.dtype) + sizes_text(type.sizes);
    if (type.device.type != DeviceType::CPU) text += "@" + name(type.device);
    return text;
}

std::string to_text(const Graph& graph) {
    std::string text = "program(\n";
    for (const Input& input : graph.inputs)
        text += "  " + value_name(input.value) + ": " + type_text(graph, input.value) + ",  # " + input.name +
                "\n";
    text += ")\n";
    for (const Symbol& symbol : graph.symbols)
        text += "  " + symbol.name + ": " + std::to_string(symbol.least) + " to " +
                std::to_string(symbol.most) + "\n";
    for (const Constant& constant : graph.constants)
        text += "  " + value_name(constant.value) + ": " + to_text(graph.values[constant.value].type) +
                " = " + kind_name(constant.kind) + "('" + constant.name + "')" +
                (constant.written ? "  # written" : "") + "\n";
    for (const Node& node : graph.nodes) text += node_text(graph, node, "  ") + "\n";
    const std::string outputs = names_text(graph.outputs);
    return text + "  return" + (outputs.empty() ? "" : " ") + outputs + "\n";
}

}  // namespace rushlight::graph
