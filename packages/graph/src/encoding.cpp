#include "encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sizes.h"
#include "text.h"

namespace rushlight::graph {
namespace {

// --- to JSON ---

Json encode_number(double v) {
    if (std::isfinite(v)) return v;
    return Json::Object{{"float", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
}

// Writes an integer, or the expression that replaces it.
Json encode_integer(int64_t integer, const std::vector<Moving>& moving, uint32_t position, uint32_t item) {
    for (const Moving& m : moving)
        if (m.position == position && m.item == item) return Json::Object{{"size", m.expression}};
    return integer;
}
Json encode_integers(const std::vector<int64_t>& integers, const std::vector<Moving>& moving,
                     uint32_t position) {
    Json::List list;
    for (uint32_t i = 0; i < integers.size(); ++i)
        list.push_back(encode_integer(integers[i], moving, position, i));
    return list;
}

constexpr const char* kJoins[] = {nullptr, nullptr, "+", "-", "*", "//"};  // indexed by Expression::Kind

Json encode_expression(const Expression& e) {
    switch (e.kind) {
        case Expression::Kind::Constant: return Json::Object{{"number", e.number}};
        case Expression::Kind::Symbol: return Json::Object{{"symbol", e.number}};
        default: return Json::Object{{kJoins[static_cast<int>(e.kind)], Json::List{e.left, e.right}}};
    }
}

Json encode_symbol(const Symbol& symbol) {
    Json::List occurrences;
    for (const auto& [input, dim, scale, offset] : symbol.occurrences)
        occurrences.push_back(
            Json::Object{{"input", input}, {"dim", dim}, {"scale", scale}, {"offset", offset}});
    return Json::Object{{"name", symbol.name},
                        {"least", symbol.least},
                        {"most", symbol.most},
                        {"example", symbol.example},
                        {"places", std::move(occurrences)}};
}

Json encode_ints(const std::vector<int64_t>& ints) { return Json::List(ints.begin(), ints.end()); }

struct EncodeArgument {
    Json operator()(std::monostate) const { return {}; }
    Json operator()(bool v) const { return v; }
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const { return encode_number(v); }
    Json operator()(Complex<double> v) const {
        return Json::Object{{"complex", Json::List{encode_number(v.re), encode_number(v.im)}}};
    }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(DType v) const { return Json::Object{{"dtype", name(v)}}; }
    Json operator()(Device v) const { return Json::Object{{"device", name(v)}}; }
    Json operator()(Use v) const { return Json::Object{{"value", v.value}}; }
    Json operator()(const std::vector<int64_t>& v) const { return encode_ints(v); }
    Json operator()(const std::vector<std::optional<ValueId>>& v) const {
        Json::List ids;
        for (const auto& id : v) ids.push_back(id ? Json(*id) : Json());
        return Json::Object{{"values", std::move(ids)}};
    }
};

Json encode_result(const Result& result) {
    if (auto* one = std::get_if<ValueId>(&result)) return *one;
    if (auto* list = std::get_if<std::vector<ValueId>>(&result))
        return Json::List(list->begin(), list->end());
    return {};
}

Json encode_value(const ValueInfo& value, ValueId id) {
    Json::Object object{{"dtype", name(value.type.dtype)},
                        {"sizes", encode_integers(value.type.sizes, value.moving, 0)}};
    if (value.type.device.type != DeviceType::CPU) object.emplace_back("device", name(value.type.device));
    if (value.memory != id) object.emplace_back("memory", value.memory);
    return object;
}

Json encode_arguments(const Node& node) {
    Json::List arguments;
    for (uint32_t i = 0; i < node.arguments.size(); ++i) {
        const Argument& argument = node.arguments[i];
        if (auto* integer = std::get_if<int64_t>(&argument))
            arguments.push_back(encode_integer(*integer, node.moving, i, 0));
        else if (auto* list = std::get_if<std::vector<int64_t>>(&argument))
            arguments.push_back(encode_integers(*list, node.moving, i));
        else arguments.push_back(std::visit(EncodeArgument{}, argument));
    }
    return arguments;
}

Json encode_ids(const std::vector<ValueId>& ids) { return Json::List(ids.begin(), ids.end()); }

Json encode_node(const Node& node);

Json encode_blocks(const std::vector<Block>& blocks) {
    Json::List list;
    for (const Block& block : blocks) {
        Json::List nodes;
        for (const Node& node : block.nodes) nodes.push_back(encode_node(node));
        list.push_back(Json::Object{{"inputs", encode_ids(block.inputs)},
                                    {"nodes", std::move(nodes)},
                                    {"outputs", encode_ids(block.outputs)}});
    }
    return list;
}

Json encode_node(const Node& node) {
    Json::List results;
    for (const Result& result : node.results) results.push_back(encode_result(result));
    Json::Object object;
    if (node.control == ControlFlow::None) object.emplace_back("op", node.op);
    else object.emplace_back("control", name(node.control));
    object.emplace_back("arguments", encode_arguments(node));
    object.emplace_back("results", std::move(results));
    if (node.control != ControlFlow::None) object.emplace_back("blocks", encode_blocks(node.blocks));
    if (!node.writes.empty())
        object.emplace_back("writes", Json::List(node.writes.begin(), node.writes.end()));
    if (node.random) object.emplace_back("random", true);
    if (node.gradients) object.emplace_back("gradients", *node.gradients);
    if (node.line) object.emplace_back("line", node.line);
    if (node.module) object.emplace_back("module", node.module);
    return object;
}

// Returns the oldest format that can represent these nodes: kOldestFormat, 2 for control flow, or 3 for gradient modes.
int64_t format_of(const std::vector<Node>& nodes) {
    int64_t format = kOldestFormat;
    for (const Node& node : nodes) {
        if (node.control != ControlFlow::None) format = std::max<int64_t>(format, 2);
        if (node.gradients) format = std::max<int64_t>(format, 3);
        for (const Block& block : node.blocks) format = std::max(format, format_of(block.nodes));
    }
    return format;
}

std::string hash_text(uint64_t hash) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

// --- from JSON ---

[[noreturn]] void fail(const std::string& where, const char* needs) {
    throw_value("program: %s must be %s", where.c_str(), needs);
}

// A part of the JSON, with its path for error messages.
struct At {
    const Json& json;
    std::string path;

    std::optional<At> optional(const char* key) const {
        const Json* found = json.find(key);
        if (!found) return std::nullopt;
        return At{*found, path + "." + key};
    }
    At operator[](const char* key) const {
        if (auto found = optional(key)) return *found;
        fail(path + "." + key, "there");
    }
    const std::string& string() const {
        if (auto* text = json.as<std::string>()) return *text;
        fail(path, "a string");
    }
    int64_t integer() const {
        if (auto* number = json.as<int64_t>()) return *number;
        fail(path, "an integer");
    }
    uint32_t index() const {
        const int64_t number = integer();
        if (number < 0 || number > std::numeric_limits<uint32_t>::max()) fail(path, "an index");
        return static_cast<uint32_t>(number);
    }
    bool truth() const {
        if (auto* truth = json.as<bool>()) return *truth;
        fail(path, "true or false");
    }
    double floating() const {
        if (auto* number = json.as<double>()) return *number;
        if (auto special = optional("float")) {
            const std::string& text = special->string();
            if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
            if (text == "inf") return std::numeric_limits<double>::infinity();
            if (text == "-inf") return -std::numeric_limits<double>::infinity();
        }
        fail(path, "a float");
    }
    template <class F>
    void each(F&& take) const {
        auto* list = json.as<Json::List>();
        if (!list) fail(path, "a list");
        for (size_t i = 0; i < list->size(); ++i) take(At{(*list)[i], path + "[" + std::to_string(i) + "]"});
    }
    std::vector<int64_t> ints() const {
        std::vector<int64_t> out;
        each([&](const At& item) { out.push_back(item.integer()); });
        return out;
    }
    std::vector<uint32_t> indices() const {
        std::vector<uint32_t> out;
        each([&](const At& item) { out.push_back(item.index()); });
        return out;
    }
    DType dtype() const {
        if (auto found = dtype_named(string())) return *found;
        fail(path, "the name of a dtype");
    }
};

// The values of the expressions in the capture. The graph contains these values wherever an expression is used.
using Examples = std::vector<int64_t>;

// Reads an integer or an expression. An expression is added to `moving`.
int64_t decode_integer(const At& at, const Examples& examples, std::vector<Moving>& moving, uint32_t position,
                       uint32_t item) {
    auto size = at.optional("size");
    if (!size) return at.integer();
    const uint32_t expression = size->index();
    if (expression >= examples.size()) fail(size->path, "the index of an expression");
    moving.push_back({position, item, expression});
    return examples[expression];
}
std::vector<int64_t> decode_integers(const At& at, const Examples& examples, std::vector<Moving>& moving,
                                     uint32_t position) {
    std::vector<int64_t> out;
    at.each([&](const At& item) {
        out.push_back(decode_integer(item, examples, moving, position, static_cast<uint32_t>(out.size())));
    });
    return out;
}

Argument decode_argument(const At& at, const Examples& examples, std::vector<Moving>& moving,
                         uint32_t position) {
    if (at.json.is_null()) return std::monostate();
    if (auto* v = at.json.as<bool>()) return *v;
    if (auto* v = at.json.as<int64_t>()) return *v;
    if (auto* v = at.json.as<double>()) return *v;
    if (auto* v = at.json.as<std::string>()) return *v;
    if (at.json.as<Json::List>()) return decode_integers(at, examples, moving, position);
    if (auto* members = at.json.as<Json::Object>(); members->size() != 1) fail(at.path, "an argument");
    if (auto value = at.optional("value")) return Use{value->index()};
    if (at.optional("size")) return decode_integer(at, examples, moving, position, 0);
    if (at.optional("float")) return at.floating();
    if (auto dtype = at.optional("dtype")) return dtype->dtype();
    if (auto device = at.optional("device")) return parse_device(device->string());
    if (auto parts = at.optional("complex")) {
        std::vector<double> numbers;
        parts->each([&](const At& part) { numbers.push_back(part.floating()); });
        if (numbers.size() != 2) fail(parts->path, "two floats");
        return Complex<double>(numbers[0], numbers[1]);
    }
    if (auto values = at.optional("values")) {
        std::vector<std::optional<ValueId>> ids;
        values->each([&](const At& item) {
            ids.push_back(item.json.is_null() ? std::nullopt : std::optional<ValueId>(item.index()));
        });
        return ids;
    }
    fail(at.path, "an argument");
}

Result decode_result(const At& at) {
    if (at.json.is_null()) return std::monostate();
    if (at.json.as<Json::List>()) return at.indices();
    return at.index();
}

Node decode_node(const At& at, const Examples& examples);

Block decode_block(const At& at, const Examples& examples) {
    Block block;
    block.inputs = at["inputs"].indices();
    at["nodes"].each([&](const At& item) { block.nodes.push_back(decode_node(item, examples)); });
    block.outputs = at["outputs"].indices();
    return block;
}

ControlFlow decode_control(const At& at) {
    for (ControlFlow control : {ControlFlow::Cond, ControlFlow::WhileLoop, ControlFlow::Scan})
        if (at.string() == name(control)) return control;
    fail(at.path, "cond, while_loop or scan");
}

Node decode_node(const At& at, const Examples& examples) {
    Node node;
    if (auto control = at.optional("control")) {
        node.control = decode_control(*control);
        at["blocks"].each([&](const At& item) { node.blocks.push_back(decode_block(item, examples)); });
    } else {
        node.op = at["op"].index();
    }
    at["arguments"].each([&](const At& item) {
        const auto position = static_cast<uint32_t>(node.arguments.size());
        node.arguments.push_back(decode_argument(item, examples, node.moving, position));
    });
    at["results"].each([&](const At& item) { node.results.push_back(decode_result(item)); });
    if (auto writes = at.optional("writes")) node.writes = writes->indices();
    if (auto random = at.optional("random")) node.random = random->truth();
    if (auto gradients = at.optional("gradients")) node.gradients = gradients->truth();
    if (auto line = at.optional("line")) node.line = line->index();
    if (auto module = at.optional("module")) node.module = module->index();
    return node;
}

ValueInfo decode_value(const At& at, ValueId id, const Examples& examples) {
    ValueInfo value;
    value.type.dtype = at["dtype"].dtype();
    value.type.sizes = decode_integers(at["sizes"], examples, value.moving, 0);
    if (auto device = at.optional("device")) value.type.device = parse_device(device->string());
    auto memory = at.optional("memory");
    value.memory = memory ? memory->index() : id;
    return value;
}

Symbol decode_symbol(const At& at) {
    Symbol symbol{
        at["name"].string(), at["least"].integer(), at["most"].integer(), at["example"].integer(), {}};
    at["places"].each([&](const At& occurrence) {
        symbol.occurrences.push_back({occurrence["input"].index(), occurrence["dim"].index(),
                                      occurrence["scale"].integer(), occurrence["offset"].integer()});
    });
    return symbol;
}

Expression decode_expression(const At& at, uint32_t index, size_t symbols) {
    using Kind = Expression::Kind;
    if (auto number = at.optional("number")) return {Kind::Constant, number->integer(), 0, 0};
    if (auto symbol = at.optional("symbol")) {
        if (symbol->index() >= symbols) fail(symbol->path, "the index of a size");
        return {Kind::Symbol, symbol->index(), 0, 0};
    }
    for (Kind kind : {Kind::Add, Kind::Subtract, Kind::Multiply, Kind::FloorDivide})
        if (auto parts = at.optional(kJoins[static_cast<int>(kind)])) {
            const std::vector<uint32_t> indices = parts->indices();
            if (indices.size() != 2 || std::max(indices[0], indices[1]) >= index)
                fail(parts->path, "two earlier expressions");
            return {kind, 0, indices[0], indices[1]};
        }
    fail(at.path, "an expression");
}

Examples decode_sizes(const At& root, Graph& graph) {
    if (auto symbols = root.optional("symbols"))
        symbols->each([&](const At& at) { graph.symbols.push_back(decode_symbol(at)); });
    if (auto expressions = root.optional("expressions"))
        expressions->each([&](const At& at) {
            const auto index = static_cast<uint32_t>(graph.expressions.size());
            graph.expressions.push_back(decode_expression(at, index, graph.symbols.size()));
        });
    verify_sizes(graph);
    std::vector<int64_t> values;
    for (const Symbol& symbol : graph.symbols) values.push_back(symbol.example);
    return evaluate(graph, values);
}

uint64_t decode_hash(const At& at) {
    const std::string& text = at.string();
    char* end = nullptr;
    const uint64_t hash = std::strtoull(text.c_str(), &end, 16);
    if (text.size() != 16 || hash_text(hash) != text) fail(at.path, "16 hexadecimal digits");
    return hash;
}

ConstantKind decode_kind(const At& at) {
    for (int kind = 0; kind < 3; ++kind)
        if (at.string() == kConstantKinds[kind]) return static_cast<ConstantKind>(kind);
    fail(at.path, "parameter, buffer or constant");
}

}  // namespace

std::optional<DType> dtype_named(std::string_view text) {
    for (int i = 0; i < kNumDTypes; ++i)
        if (text == name(static_cast<DType>(i))) return static_cast<DType>(i);
    return std::nullopt;
}

std::string call_text(const Node& node) {
    const Json gradients = node.gradients ? Json(*node.gradients) : Json();
    return Json(Json::List{node.op, encode_arguments(node), gradients}).text();
}

Json encode(const Graph& graph) {
    Json::List operators, values, inputs, constants, nodes;
    for (const OperatorRef& op : graph.operators)
        operators.push_back(Json::List{op.name, hash_text(op.hash)});
    for (ValueId id = 0; id < graph.values.size(); ++id) values.push_back(encode_value(graph.values[id], id));
    for (const Input& input : graph.inputs)
        inputs.push_back(Json::Object{{"name", input.name}, {"value", input.value}});
    for (const Constant& constant : graph.constants) {
        Json::Object object{{"name", constant.name},
                            {"value", constant.value},
                            {"kind", kConstantKinds[static_cast<int>(constant.kind)]}};
        if (constant.written) object.emplace_back("written", true);
        if (!constant.strides.empty()) object.emplace_back("strides", encode_ints(constant.strides));
        constants.push_back(std::move(object));
    }
    for (const Node& node : graph.nodes) nodes.push_back(encode_node(node));
    Json::Object metadata;
    for (const auto& [key, text] : graph.metadata) metadata.emplace_back(key, text);
    Json::List symbols, expressions;
    for (const Symbol& symbol : graph.symbols) symbols.push_back(encode_symbol(symbol));
    for (const Expression& expression : graph.expressions)
        expressions.push_back(encode_expression(expression));
    Json::Object object{{"format", format_of(graph.nodes)},
                        {"writer", graph.writer},
                        {"symbols", std::move(symbols)},
                        {"expressions", std::move(expressions)},
                        {"operators", std::move(operators)},
                        {"values", std::move(values)},
                        {"inputs", std::move(inputs)},
                        {"constants", std::move(constants)},
                        {"nodes", std::move(nodes)},
                        {"outputs", Json::List(graph.outputs.begin(), graph.outputs.end())},
                        {"texts", Json::List(graph.texts.begin(), graph.texts.end())},
                        {"metadata", std::move(metadata)}};
    if (graph.below_gradients) object.emplace_back("below_gradients", true);
    return object;
}

std::string to_json(const Graph& graph) { return encode(graph).text(); }

Graph decode(const Json& json) {
    const At root{json, "graph"};
    Graph graph;
    graph.writer = root["writer"].string();
    const int64_t format = root["format"].integer();
    RL_CHECK(format >= kOldestFormat && format <= kFormat, throw_value,
             "program: the file has format %lld, this library reads formats %lld to %lld\n"
             "hint: read the file with the version that wrote it, %s",
             static_cast<long long>(format), static_cast<long long>(kOldestFormat),
             static_cast<long long>(kFormat), graph.writer.c_str());
    root["operators"].each([&](const At& at) {
        std::vector<At> parts;
        at.each([&](const At& part) { parts.push_back(part); });
        if (parts.size() != 2) fail(at.path, "a name and a hash");
        graph.operators.push_back({parts[0].string(), decode_hash(parts[1])});
    });
    const Examples examples = decode_sizes(root, graph);
    root["values"].each([&](const At& at) {
        graph.values.push_back(decode_value(at, static_cast<ValueId>(graph.values.size()), examples));
    });
    root["inputs"].each(
        [&](const At& at) { graph.inputs.push_back({at["name"].string(), at["value"].index()}); });
    root["constants"].each([&](const At& at) {
        Constant constant{at["name"].string(), at["value"].index(), decode_kind(at["kind"]), false, {}};
        if (auto written = at.optional("written")) constant.written = written->truth();
        if (auto strides = at.optional("strides")) constant.strides = strides->ints();
        graph.constants.push_back(std::move(constant));
    });
    root["nodes"].each([&](const At& at) { graph.nodes.push_back(decode_node(at, examples)); });
    graph.outputs = root["outputs"].indices();
    if (auto below = root.optional("below_gradients")) graph.below_gradients = below->truth();
    graph.texts.clear();
    root["texts"].each([&](const At& at) { graph.texts.push_back(at.string()); });
    if (graph.texts.empty() || !graph.texts[0].empty())
        fail("graph.texts", "a list whose first string is empty");
    const At metadata = root["metadata"];
    auto* members = metadata.json.as<Json::Object>();
    if (!members) fail(metadata.path, "an object");
    for (const auto& [key, value] : *members)
        graph.metadata[key] = At{value, metadata.path + "." + key}.string();
    return graph;
}

}  // namespace rushlight::graph
