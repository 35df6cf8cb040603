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

// For tensors with more elements than this, an error is raised before memory is allocated.
constexpr int64_t kMostElements = int64_t{1} << 60;
// A graph with more nested blocks could not be read from a file, because its JSON would be nested too deeply.
constexpr int kDeepestBlocks = 12;

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
    explicit Verifier(const Graph& graph) : graph_(graph), definitions_(graph.values.size()) {}

    void run() {
        operators_ = resolve(graph_);
        for (const Operator* op : operators_) schemas_.emplace_back(*op);
        verify_sizes(graph_);
        for (const ValueInfo& value : graph_.values) check_type(value);
        for (const Input& input : graph_.inputs) define(input.value, "input '" + input.name + "'");
        check_occurrences();
        for (const Constant& constant : graph_.constants) check_constant(constant);
        check_nodes(graph_.nodes);
        for (ValueId output : graph_.outputs) use(output, "a result of the program");
        for (size_t i = 0; i < definitions_.size(); ++i)
            if (!definitions_[i].defined) fail("value %zu is never defined", i);
    }

  private:
    // Where a value is defined.
    struct Definition {
        bool defined = false;
        bool in_scope = false;
        bool by_node = false;  // defined by a node, not as an input or constant
        const Block* block = nullptr;  // null for the graph itself
    };

    void check_nodes(const std::vector<Node>& nodes) {
        const Node* outer = node_;
        const size_t outer_number = number_;
        for (number_ = 0; number_ < nodes.size(); ++number_) {
            node_ = &nodes[number_];
            check_node(*node_);
        }
        node_ = outer;
        number_ = outer_number;
    }

    void check_occurrences() const {
        for (const Symbol& symbol : graph_.symbols)
            for (const auto& [input, dim, scale, offset] : symbol.occurrences) {
                const ValueId id = input < graph_.inputs.size() ? graph_.inputs[input].value : 0;
                if (input >= graph_.inputs.size() || dim >= graph_.values[id].type.sizes.size())
                    fail("size '%s' refers to an input that does not exist", symbol.name.c_str());
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
                fail("value %zu refers to a size that is not defined", index);
        if (memory > index) fail("value %zu shares memory with value %u, which comes later", index, memory);
        if (graph_.values[memory].memory != memory)
            fail("value %zu must refer to the first value that shares its memory, not to value %u", index,
                 memory);
    }

    void define(ValueId id, const std::string& what, bool by_node = false) {
        if (id >= definitions_.size())
            fail("%s defines value %u, but the number of values is %zu", what.c_str(), id,
                 definitions_.size());
        if (definitions_[id].defined) fail("%s defines value %u a second time", what.c_str(), id);
        definitions_[id] = {true, true, by_node, block_};
        if (block_) defined_here_.push_back(id);
    }
    void use(ValueId id, const std::string& what) const {
        if (id >= definitions_.size())
            fail("%s uses value %u, but the number of values is %zu", what.c_str(), id, definitions_.size());
        if (!definitions_[id].defined) fail("%s uses value %u before it is defined", what.c_str(), id);
        if (!definitions_[id].in_scope)
            fail("%s uses value %u outside of the block that defines it", what.c_str(), id);
    }

    void check_constant(const Constant& constant) {
        define(constant.value, "constant '" + constant.name + "'");
        if (!names_.insert(constant.name).second)
            fail("two constants are called '%s'", constant.name.c_str());
        const TensorType& type = graph_.values[constant.value].type;
        if (constant.strides.empty()) return;
        if (constant.strides.size() != type.sizes.size())
            fail("constant '%s' has %zu strides but %zu sizes", constant.name.c_str(),
                 constant.strides.size(), type.sizes.size());
        int64_t last = 0, step;
        for (size_t d = 0; d < type.sizes.size(); ++d)
            if (constant.strides[d] < 0 ||
                __builtin_mul_overflow(constant.strides[d], std::max<int64_t>(type.sizes[d], 1) - 1, &step) ||
                __builtin_add_overflow(last, step, &last) || last > kMostElements)
                fail("constant '%s' has strides that are negative or too large", constant.name.c_str());
    }

    void check_node(const Node& node) {
        if (std::max(node.line, node.module) >= graph_.texts.size())
            fail("node %zu refers to a string that does not exist: the program has only %zu strings", number_,
                 graph_.texts.size());
        if (node.control != ControlFlow::None) return check_control_flow(node);
        if (!node.blocks.empty()) fail("%s calls an operator, so it must not have blocks", name().c_str());
        if (node.op >= graph_.operators.size())
            fail("node %zu calls operator %u, but the program has only %zu operators", number_, node.op,
                 graph_.operators.size());
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
                fail("%s: an argument refers to a size that is not defined", name().c_str());
        }
        for (uint32_t position : node.writes) {
            if (position >= node.arguments.size()) fail("%s writes argument %u", name().c_str(), position);
            check_write(node.arguments[position]);
        }
        if (node.results.size() != schema.returns.size())
            fail("%s has %zu results, needs %zu: %s", name().c_str(), node.results.size(),
                 schema.returns.size(), op->schema);
        for (size_t i = 0; i < node.results.size(); ++i) {
            const bool is_list = std::holds_alternative<std::vector<ValueId>>(node.results[i]);
            if (is_list != (schema.returns[i] == "Tensor[]"))
                fail("%s: result %zu must be %s", name().c_str(), i, std::string(schema.returns[i]).c_str());
            if (auto* one = std::get_if<ValueId>(&node.results[i])) define(*one, name(), true);
            else if (auto* list = std::get_if<std::vector<ValueId>>(&node.results[i]))
                for (ValueId id : *list) define(id, name(), true);
        }
    }

    // Whether a node of the checked block allocated the memory of a value.
    bool is_own(ValueId id) const {
        const Definition& at = definitions_[graph_.values[id].memory];
        return at.block == block_ && at.by_node;
    }
    void check_write(const Argument& argument) const {
        if (!block_) return;
        const auto check = [&](ValueId id) {
            if (!is_own(id))
                fail("%s modifies value %u in place, but its memory was not allocated in the same block",
                     name().c_str(), id);
        };
        if (auto* use = std::get_if<Use>(&argument)) check(use->value);
        else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
            for (const auto& id : *list)
                if (id) check(*id);
    }

    // --- control flow: Note [Control flow] ---

    const TensorType& type(ValueId id) const { return graph_.values[id].type; }

    void check_control_flow(const Node& node) {
        const bool is_cond = node.control == ControlFlow::Cond, is_scan = node.control == ControlFlow::Scan;
        const std::vector<Block>& blocks = node.blocks;
        if (blocks.size() != (is_scan ? 1 : 2))
            fail("%s has %zu blocks, needs %d", name().c_str(), blocks.size(), is_scan ? 1 : 2);
        if (node.arguments.size() != (is_scan ? 2 : 1))
            fail("%s has %zu arguments, needs %d", name().c_str(), node.arguments.size(), is_scan ? 2 : 1);
        if (!node.writes.empty() || !node.moving.empty())
            fail("%s must not modify its arguments in place or depend on dynamic sizes", name().c_str());
        std::vector<TensorType> given, made, last;  // types of a block's inputs and outputs, and of results
        if (is_cond) {
            const auto* pred = std::get_if<Use>(&node.arguments[0]);
            if (!pred) fail("%s: argument 0 must be a tensor", name().c_str());
            use(pred->value, name());
            require_one_element(pred->value);
        } else {
            for (ValueId id : tensors_of(node, 0)) given.push_back(type(id));
        }
        const size_t carried = given.size();
        std::optional<int64_t> length;
        if (is_scan) {
            for (ValueId id : tensors_of(node, 1)) {
                TensorType slice = type(id);
                if (slice.sizes.empty() || slice.sizes[0] < 1 || (length && *length != slice.sizes[0]))
                    fail(
                        "%s: the tensors of argument 1 must have the same first dimension, of size 1 or more",
                        name().c_str());
                length = slice.sizes[0];
                slice.sizes.erase(slice.sizes.begin());
                given.push_back(std::move(slice));
            }
            if (!length) fail("%s: argument 1 must contain at least one tensor", name().c_str());
        }
        if (depth_ == kDeepestBlocks)
            fail("%s is nested in %d blocks, at most %d are allowed", name().c_str(), depth_, kDeepestBlocks);
        for (size_t i = 0; i < node.results.size(); ++i) {
            const auto* id = std::get_if<ValueId>(&node.results[i]);
            if (!id || *id >= definitions_.size()) fail("%s: result %zu must be a tensor", name().c_str(), i);
            last.push_back(type(*id));
        }
        if (is_cond) {
            made = last;
        } else {
            made.assign(given.begin(), given.begin() + static_cast<ptrdiff_t>(carried));
            for (size_t i = carried; is_scan && i < last.size(); ++i) {
                TensorType row = last[i];
                if (row.sizes.empty() || row.sizes[0] != *length)
                    fail("%s: result %zu must be of length %lld", name().c_str(), i,
                         static_cast<long long>(*length));
                row.sizes.erase(row.sizes.begin());
                made.push_back(std::move(row));
            }
            if (last.size() != made.size() ||
                !std::equal(made.begin(), made.begin() + static_cast<ptrdiff_t>(carried), last.begin()))
                fail("%s: needs one result for each carried tensor, of the same dtype and shape",
                     name().c_str());
        }
        for (size_t i = 0; i < blocks.size(); ++i) {
            const bool is_condition = node.control == ControlFlow::WhileLoop && i == 0;
            check_block(blocks[i], given, is_condition ? nullptr : &made);
        }
        for (const Result& result : node.results) {
            const ValueId id = std::get<ValueId>(result);
            define(id, name(), true);
            if (graph_.values[id].memory != id)
                fail("%s: its result, value %u, must not share memory with another value", name().c_str(),
                     id);
        }
    }

    // If `made` is null, the block is a condition, whose output is one bool.
    void check_block(const Block& block, const std::vector<TensorType>& given,
                     const std::vector<TensorType>* made) {
        const Block* outer_block = block_;
        std::vector<ValueId> outer_defined;
        outer_defined.swap(defined_here_);
        block_ = &block;
        ++depth_;
        const auto check = [&](const std::vector<ValueId>& ids, const std::vector<TensorType>& types,
                               const char* what) {
            if (ids.size() != types.size())
                fail("%s: a block has %zu %s, needs %zu", name().c_str(), ids.size(), what, types.size());
            for (size_t i = 0; i < ids.size(); ++i)
                if (ids[i] >= definitions_.size() || !(type(ids[i]) == types[i]))
                    fail("%s: the %s of a block must have the type %s at index %zu", name().c_str(), what,
                         to_text(types[i]).c_str(), i);
        };
        check(block.inputs, given, "inputs");
        for (ValueId id : block.inputs) define(id, name());
        check_nodes(block.nodes);
        for (ValueId id : block.outputs) use(id, name());
        if (made) {
            check(block.outputs, *made, "outputs");
            std::unordered_set<ValueId> memory;
            for (ValueId id : block.outputs)
                if (!is_own(id) || !memory.insert(graph_.values[id].memory).second)
                    fail("%s: output %u of a block must have its own memory, allocated in the block",
                         name().c_str(), id);
        } else {
            if (block.outputs.size() != 1) fail("%s: the condition must be one tensor", name().c_str());
            require_one_element(block.outputs[0]);
        }
        for (ValueId id : defined_here_) definitions_[id].in_scope = false;
        defined_here_.swap(outer_defined);
        block_ = outer_block;
        --depth_;
    }

    void require_one_element(ValueId id) const {
        int64_t count = 1;
        for (int64_t size : type(id).sizes) count *= size;  // cannot overflow: check_type limits the product
        if (count != 1 || !graph_.values[id].moving.empty())
            fail("%s: value %u must have one element", name().c_str(), id);
    }

    // Returns the tensors of a list argument. Raises an error if a tensor is None.
    std::vector<ValueId> tensors_of(const Node& node, size_t position) const {
        const auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&node.arguments[position]);
        std::vector<ValueId> ids;
        if (!list) fail("%s: argument %zu must be a list of tensors", name().c_str(), position);
        for (const auto& id : *list) {
            if (!id) fail("%s: argument %zu contains None", name().c_str(), position);
            use(*id, name());
            ids.push_back(*id);
        }
        return ids;
    }

    // Whether a boxed call accepts the argument for a parameter of type `type`. Tensors must be defined.
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

    std::string name() const { return graph_.describe(*node_, number_); }

    const Graph& graph_;
    std::vector<const Operator*> operators_;
    std::vector<SchemaText> schemas_;
    std::vector<Definition> definitions_;
    std::unordered_set<std::string_view> names_;
    const Node* node_ = nullptr;  // the node that is being checked, and its index in its list
    size_t number_ = 0;
    const Block* block_ = nullptr;  // the block that contains this node
    int depth_ = 0;
    std::vector<ValueId> defined_here_;  // values that are defined in this block
};

}  // namespace

std::string Graph::describe(const Node& node, size_t number) const {
    std::string text = "node " + std::to_string(number) + " (";
    if (node.control != ControlFlow::None) text += name(node.control);
    else text += node.op < operators.size() ? operators[node.op].name : "?";
    if (node.line && node.line < texts.size()) text += " at " + texts[node.line];
    if (node.module && node.module < texts.size()) text += " in " + texts[node.module];
    return text + ")";
}

const char* name(ControlFlow control) {
    switch (control) {
        case ControlFlow::Cond: return "cond";
        case ControlFlow::WhileLoop: return "while_loop";
        case ControlFlow::Scan: return "scan";
        case ControlFlow::None: break;
    }
    return nullptr;
}

std::vector<const Operator*> resolve(const Graph& graph) {
    std::vector<const Operator*> found;
    for (const OperatorRef& wanted : graph.operators) {
        const Operator* op = find_operator(wanted.name);
        RL_CHECK(op, throw_runtime,
                 "program: this library, rushlight %s, has no operator '%s'\n"
                 "hint: run the program with the version that wrote it, %s",
                 RUSHLIGHT_VERSION, wanted.name.c_str(), graph.writer.c_str());
        RL_CHECK(op->hash == wanted.hash, throw_runtime,
                 "program: operator '%s' of this library, rushlight %s, has a different schema from the "
                 "program's (hash %016llx, needs %016llx)\n"
                 "hint: run the program with the version that wrote it, %s",
                 wanted.name.c_str(), RUSHLIGHT_VERSION, static_cast<unsigned long long>(op->hash),
                 static_cast<unsigned long long>(wanted.hash), graph.writer.c_str());
        found.push_back(op);
    }
    return found;
}

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace rushlight::graph
