#include "rushlight/graph/graph.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <unordered_set>

#include "rushlight/abi.h"
#include "rushlight/schema.h"
#include "sizes.h"

namespace rushlight::graph {
namespace {

// Sizes of more elements than this are an error long before memory is asked for.
constexpr int64_t kMostElements = int64_t{1} << 60;

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw_value("program: %s", text);
}

class Verifier {
  public:
    explicit Verifier(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

    void run() {
        operators_ = resolve(graph_);
        for (const Operator* op : operators_) schemas_.emplace_back(*op);
        verify_sizes(graph_);
        for (const ValueInfo& value : graph_.values) check_type(value);
        for (const Input& input : graph_.inputs) define(input.value, "input '" + input.name + "'");
        check_places();
        for (const Constant& constant : graph_.constants) check_constant(constant);
        for (at_ = 0; at_ < graph_.nodes.size(); ++at_) check_node(graph_.nodes[at_]);
        for (ValueId output : graph_.outputs) use(output, "the results");
        for (size_t i = 0; i < defined_.size(); ++i)
            if (!defined_[i]) fail("value %zu is never defined", i);
    }

  private:
    void check_places() const {
        for (const Symbol& symbol : graph_.symbols)
            for (const auto& [input, dim, scale, offset] : symbol.places) {
                const ValueId id = input < graph_.inputs.size() ? graph_.inputs[input].value : 0;
                if (input >= graph_.inputs.size() || dim >= graph_.values[id].type.sizes.size())
                    fail("size '%s' is that of an input that is not there", symbol.name.c_str());
            }
    }

    void check_type(const ValueInfo& value) const {
        const auto& [type, memory, moving] = value;
        const auto index = static_cast<size_t>(&value - graph_.values.data());
        if (static_cast<int>(type.dtype) >= kNumDTypes) fail("value %zu has no dtype", index);
        if (type.sizes.size() > static_cast<size_t>(kMaxDims))
            fail("value %zu has %zu dimensions, a tensor has at most %d", index, type.sizes.size(), kMaxDims);
        int64_t elements = 1;
        for (int64_t size : type.sizes) {
            if (size < 0) fail("value %zu has a negative size", index);
            if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
                elements > kMostElements)
                fail("value %zu of shape %s is larger than any memory", index, to_string(type.sizes).c_str());
        }
        for (const Moving& size : moving)
            if (size.item >= type.sizes.size() || size.expression >= graph_.expressions.size())
                fail("value %zu has a size that is not there", index);
        if (memory > index) fail("value %zu shares memory with %u, which comes later", index, memory);
        if (graph_.values[memory].memory != memory)
            fail("value %zu shares memory with %u, which is not the first with that memory", index, memory);
    }

    void define(ValueId id, const std::string& what) {
        if (id >= defined_.size()) fail("%s defines value %u of %zu", what.c_str(), id, defined_.size());
        if (defined_[id]) fail("%s defines value %u a second time", what.c_str(), id);
        defined_[id] = true;
    }
    void use(ValueId id, const std::string& what) const {
        if (id >= defined_.size()) fail("%s uses value %u of %zu", what.c_str(), id, defined_.size());
        if (!defined_[id]) fail("%s uses value %u before it is defined", what.c_str(), id);
    }

    void check_constant(const Constant& constant) {
        define(constant.value, "constant '" + constant.name + "'");
        if (!names_.insert(constant.name).second)
            fail("two constants are called '%s'", constant.name.c_str());
        const TensorType& type = graph_.values[constant.value].type;
        if (constant.strides.empty()) return;
        if (constant.strides.size() != type.sizes.size())
            fail("constant '%s' has %zu strides and %zu sizes", constant.name.c_str(),
                 constant.strides.size(), type.sizes.size());
        int64_t last = 0, step;
        for (size_t d = 0; d < type.sizes.size(); ++d)
            if (constant.strides[d] < 0 ||
                __builtin_mul_overflow(constant.strides[d], std::max<int64_t>(type.sizes[d], 1) - 1, &step) ||
                __builtin_add_overflow(last, step, &last) || last > kMostElements)
                fail("constant '%s' has strides that no memory has", constant.name.c_str());
    }

    void check_node(const Node& node) {
        if (node.op >= graph_.operators.size())
            fail("node %zu calls operator %u of %zu", at_, node.op, graph_.operators.size());
        if (std::max(node.line, node.module) >= graph_.texts.size())
            fail("node %zu has a text beyond the %zu there are", at_, graph_.texts.size());
        const Operator* op = operators_[node.op];
        const SchemaText& schema = schemas_[node.op];
        if (node.arguments.size() != schema.arguments.size())
            fail("%s has %zu arguments, needs %zu: %s", name().c_str(), node.arguments.size(),
                 schema.arguments.size(), op->schema);
        for (size_t i = 0; i < node.arguments.size(); ++i) {
            const SchemaArgument& wanted = schema.arguments[i];
            if (!fits(node.arguments[i], wanted.type))
                fail("%s: argument '%s' must be %s", name().c_str(), std::string(wanted.name).c_str(),
                     std::string(wanted.type).c_str());
        }
        for (const auto& [position, item, expression] : node.moving) {
            const Argument* argument = position < node.arguments.size() ? &node.arguments[position] : nullptr;
            const auto* list = argument ? std::get_if<std::vector<int64_t>>(argument) : nullptr;
            const bool is_integer = argument && std::holds_alternative<int64_t>(*argument) && item == 0;
            if (expression >= graph_.expressions.size() || !(is_integer || (list && item < list->size())))
                fail("%s has a size among its arguments that is not there", name().c_str());
        }
        for (uint32_t position : node.writes)
            if (position >= node.arguments.size()) fail("%s writes argument %u", name().c_str(), position);
        if (node.results.size() != schema.returns.size())
            fail("%s has %zu results, needs %zu: %s", name().c_str(), node.results.size(),
                 schema.returns.size(), op->schema);
        for (size_t i = 0; i < node.results.size(); ++i) {
            const bool is_list = std::holds_alternative<std::vector<ValueId>>(node.results[i]);
            if (is_list != (schema.returns[i] == "Tensor[]"))
                fail("%s: result %zu must be %s", name().c_str(), i, std::string(schema.returns[i]).c_str());
            if (auto* one = std::get_if<ValueId>(&node.results[i])) define(*one, name());
            else if (auto* list = std::get_if<std::vector<ValueId>>(&node.results[i]))
                for (ValueId id : *list) define(id, name());
        }
    }

    // Whether core's boxed call takes the argument for the type; tensors must be defined.
    bool fits(const Argument& argument, std::string_view type) const {
        const bool optional = type.ends_with('?');
        if (std::holds_alternative<std::monostate>(argument)) return optional;
        if (optional) type.remove_suffix(1);
        const auto is = [&]<class T>(std::type_identity<T>) { return std::holds_alternative<T>(argument); };
        const bool number = is(std::type_identity<bool>{}) || is(std::type_identity<int64_t>{}) ||
                            is(std::type_identity<double>{});
        if (auto* tensor = std::get_if<Use>(&argument)) {
            use(tensor->value, name());
            return type == "Tensor" || type == "TensorOrScalar";
        }
        if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
            if (type != "Tensor[]" && type != "Tensor?[]") return false;
            for (const auto& id : *list) {
                if (!id && type == "Tensor[]") return false;
                if (id) use(*id, name());
            }
            return true;
        }
        if (type == "Scalar" || type == "TensorOrScalar")
            return number || is(std::type_identity<Complex<double>>{});
        if (type == "float") return number;
        if (type == "int") return is(std::type_identity<int64_t>{});
        if (type == "bool") return is(std::type_identity<bool>{});
        if (type == "str") return is(std::type_identity<std::string>{});
        if (type == "dtype") return is(std::type_identity<DType>{});
        if (type == "device") return is(std::type_identity<Device>{});
        if (type == "int[]") return is(std::type_identity<std::vector<int64_t>>{});
        return false;
    }

    std::string name() const { return graph_.describe(at_); }

    const Graph& graph_;
    std::vector<const Operator*> operators_;
    std::vector<SchemaText> schemas_;
    std::vector<bool> defined_;
    std::unordered_set<std::string_view> names_;
    size_t at_ = 0;
};

}  // namespace

std::string Graph::describe(size_t node) const {
    const Node& n = nodes[node];
    std::string text = "node " + std::to_string(node) + " (";
    text += n.op < operators.size() ? operators[n.op].name : "?";
    if (n.line && n.line < texts.size()) text += " at " + texts[n.line];
    if (n.module && n.module < texts.size()) text += " in " + texts[n.module];
    return text + ")";
}

std::vector<const Operator*> resolve(const Graph& graph) {
    std::vector<const Operator*> found;
    for (const OperatorRef& wanted : graph.operators) {
        const Operator* op = find_operator(wanted.name);
        RL_CHECK(
            op, throw_runtime,
            "program: this library, rushlight %s, has no operator '%s'\nhint: the program was written by %s",
            RUSHLIGHT_VERSION, wanted.name.c_str(), graph.writer.c_str());
        RL_CHECK(
            op->hash == wanted.hash, throw_runtime,
            "program: operator '%s' of this library, rushlight %s, has another schema than the program's "
            "(hash %016llx, needs %016llx)\nhint: the program was written by %s",
            wanted.name.c_str(), RUSHLIGHT_VERSION, static_cast<unsigned long long>(op->hash),
            static_cast<unsigned long long>(wanted.hash), graph.writer.c_str());
        found.push_back(op);
    }
    return found;
}

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace rushlight::graph
