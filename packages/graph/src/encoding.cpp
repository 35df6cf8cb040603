#include "encoding.h"

#include <cmath>
#include <limits>

namespace rushlight::graph {
namespace {

// --- to JSON ---

Json encode_number(double v) {
    if (std::isfinite(v)) return v;
    return Json::Object{{"float", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
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
    Json::Object object{{"dtype", name(value.type.dtype)}, {"sizes", encode_ints(value.type.sizes)}};
    if (value.type.device.type != DeviceType::CPU) object.emplace_back("device", name(value.type.device));
    if (value.memory != id) object.emplace_back("memory", value.memory);
    return object;
}

Json encode_node(const Node& node) {
    Json::List arguments, results;
    for (const Argument& argument : node.arguments)
        arguments.push_back(std::visit(EncodeArgument{}, argument));
    for (const Result& result : node.results) results.push_back(encode_result(result));
    Json::Object object{
        {"op", node.op}, {"arguments", std::move(arguments)}, {"results", std::move(results)}};
    if (!node.writes.empty())
        object.emplace_back("writes", Json::List(node.writes.begin(), node.writes.end()));
    if (node.random) object.emplace_back("random", true);
    if (node.line) object.emplace_back("line", node.line);
    if (node.module) object.emplace_back("module", node.module);
    return object;
}

constexpr const char* kKinds[] = {"parameter", "buffer", "constant"};

std::string hash_text(uint64_t hash) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

// --- from JSON ---

[[noreturn]] void fail(const std::string& where, const char* needs) {
    throw_value("program: %s must be %s", where.c_str(), needs);
}

// A member of the JSON with its path, for errors.
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

Argument decode_argument(const At& at) {
    if (at.json.is_null()) return std::monostate();
    if (auto* v = at.json.as<bool>()) return *v;
    if (auto* v = at.json.as<int64_t>()) return *v;
    if (auto* v = at.json.as<double>()) return *v;
    if (auto* v = at.json.as<std::string>()) return *v;
    if (at.json.as<Json::List>()) return at.ints();
    if (auto* members = at.json.as<Json::Object>(); members->size() != 1) fail(at.path, "an argument");
    if (auto value = at.optional("value")) return Use{value->index()};
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

Node decode_node(const At& at) {
    Node node;
    node.op = at["op"].index();
    at["arguments"].each([&](const At& item) { node.arguments.push_back(decode_argument(item)); });
    at["results"].each([&](const At& item) { node.results.push_back(decode_result(item)); });
    if (auto writes = at.optional("writes")) node.writes = writes->indices();
    if (auto random = at.optional("random")) node.random = random->truth();
    if (auto line = at.optional("line")) node.line = line->index();
    if (auto module = at.optional("module")) node.module = module->index();
    return node;
}

ValueInfo decode_value(const At& at, ValueId id) {
    ValueInfo value;
    value.type.dtype = at["dtype"].dtype();
    value.type.sizes = at["sizes"].ints();
    if (auto device = at.optional("device")) value.type.device = parse_device(device->string());
    auto memory = at.optional("memory");
    value.memory = memory ? memory->index() : id;
    return value;
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
        if (at.string() == kKinds[kind]) return static_cast<ConstantKind>(kind);
    fail(at.path, "parameter, buffer or constant");
}

}  // namespace

std::optional<DType> dtype_named(std::string_view text) {
    for (int i = 0; i < kNumDTypes; ++i)
        if (text == name(static_cast<DType>(i))) return static_cast<DType>(i);
    return std::nullopt;
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
                            {"kind", kKinds[static_cast<int>(constant.kind)]}};
        if (constant.written) object.emplace_back("written", true);
        if (!constant.strides.empty()) object.emplace_back("strides", encode_ints(constant.strides));
        constants.push_back(std::move(object));
    }
    for (const Node& node : graph.nodes) nodes.push_back(encode_node(node));
    Json::Object metadata;
    for (const auto& [key, text] : graph.metadata) metadata.emplace_back(key, text);
    return Json::Object{{"format", kFormat},
                        {"writer", graph.writer},
                        {"operators", std::move(operators)},
                        {"values", std::move(values)},
                        {"inputs", std::move(inputs)},
                        {"constants", std::move(constants)},
                        {"nodes", std::move(nodes)},
                        {"outputs", Json::List(graph.outputs.begin(), graph.outputs.end())},
                        {"texts", Json::List(graph.texts.begin(), graph.texts.end())},
                        {"metadata", std::move(metadata)}};
}

Graph decode(const Json& json) {
    const At root{json, "graph"};
    Graph graph;
    graph.writer = root["writer"].string();
    const int64_t format = root["format"].integer();
    RL_CHECK(format == kFormat, throw_value,
             "program: the file has format %lld, this library reads format %lld\nhint: it was written by %s",
             static_cast<long long>(format), static_cast<long long>(kFormat), graph.writer.c_str());
    root["operators"].each([&](const At& at) {
        std::vector<At> parts;
        at.each([&](const At& part) { parts.push_back(part); });
        if (parts.size() != 2) fail(at.path, "a name and a hash");
        graph.operators.push_back({parts[0].string(), decode_hash(parts[1])});
    });
    root["values"].each([&](const At& at) {
        graph.values.push_back(decode_value(at, static_cast<ValueId>(graph.values.size())));
    });
    root["inputs"].each(
        [&](const At& at) { graph.inputs.push_back({at["name"].string(), at["value"].index()}); });
    root["constants"].each([&](const At& at) {
        Constant constant{at["name"].string(), at["value"].index(), decode_kind(at["kind"]), false, {}};
        if (auto written = at.optional("written")) constant.written = written->truth();
        if (auto strides = at.optional("strides")) constant.strides = strides->ints();
        graph.constants.push_back(std::move(constant));
    });
    root["nodes"].each([&](const At& at) { graph.nodes.push_back(decode_node(at)); });
    graph.outputs = root["outputs"].indices();
    graph.texts.clear();
    root["texts"].each([&](const At& at) { graph.texts.push_back(at.string()); });
    if (graph.texts.empty() || !graph.texts[0].empty())
        fail("graph.texts", "a list whose first text is empty");
    const At metadata = root["metadata"];
    auto* members = metadata.json.as<Json::Object>();
    if (!members) fail(metadata.path, "an object");
    for (const auto& [key, value] : *members)
        graph.metadata[key] = At{value, metadata.path + "." + key}.string();
    return graph;
}

}  // namespace rushlight::graph
