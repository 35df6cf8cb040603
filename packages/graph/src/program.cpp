#include "rushlight/graph/program.h"

#include <algorithm>

#include "boxed_argument.h"
#include "control_flow.h"
#include "file.h"
#include "rushlight/interrupt.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/equal.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"

namespace rushlight::graph {
namespace {

struct Step;

// A list of nodes that is prepared to run.
struct Steps {
    std::vector<Step> steps;
    std::vector<ValueId> inputs, outputs;  // the inputs and outputs of a block of control flow
    std::vector<ValueId> released;         // values to release after the outputs have been taken
};

struct Step {
    const Node* node;
    const Operator* op;  // null for control flow
    Stack arguments;     // the arguments except tensors
    std::vector<std::pair<uint32_t, ValueId>> tensors;  // position, value
    std::vector<std::pair<uint32_t, std::vector<std::optional<ValueId>>>> lists;
    std::vector<ValueId> released;  // values that no later node uses
    std::vector<Steps> blocks;
};

// The values that one run computes from the sizes of its inputs.
using Sizes = std::vector<int64_t>;

// Returns the type of a value in a run with these sizes.
TensorType type_in(const ValueInfo& value, const Sizes& sizes) {
    TensorType type = value.type;
    for (const Moving& m : value.moving) type.sizes[m.item] = sizes[m.expression];
    return type;
}

bool has_type(const Tensor& t, const TensorType& type) {
    return t.dtype() == type.dtype && t.device().type == type.device.type &&
           std::ranges::equal(t.sizes(), type.sizes);
}
bool has_type(const Tensor& t, const ValueInfo& value, const Sizes& sizes) {
    return has_type(t, value.moving.empty() ? value.type : type_in(value, sizes));
}
std::string type_of(const Tensor& t) {
    return t.defined() ? to_text(TensorType{t.dtype(), t.device(), t.shape()}) : "nothing";
}

}  // namespace

using Values = std::vector<Tensor>;

struct Program::State {
    Graph graph;
    std::vector<Tensor> constants;
    Steps steps;

    void prepare();
    void check_constants() const;
    Sizes bind(TensorList inputs) const;
    void fill(const Step& step, const Values& values, const Sizes& sizes, Stack& stack) const;
    void store(Values& values, const Step& step, size_t number, Stack& results, const Sizes& sizes) const;
    void expect(const Step& step, size_t number, ValueId id, const Tensor& t, const Sizes& sizes) const;

    void run_steps(const Steps& steps, Values& values, const Sizes& sizes) const;
    std::vector<Tensor> run_block(const Steps& block, TensorList inputs, Values& values,
                                  const Sizes& sizes) const;
    std::vector<Tensor> run_control_flow(const Step& step, Values& values, const Sizes& sizes) const;
};

namespace {

// Finds the operators of a graph, and the last use of each value.
class Preparation {
  public:
    explicit Preparation(const Graph& graph)
        : graph_(graph),
          operators_(resolve(graph)),
          owner_(graph.values.size(), 0),
          last_(graph.values.size(), 0),
          kept_(graph.values.size(), false) {}

    Steps run() {
        for (ValueId output : graph_.outputs) kept_[output] = true;
        std::vector<ValueId> used;
        return prepare(graph_.nodes, {}, {}, used);
    }

  private:
    // Adds to `used` the values from outside of the list that its nodes use.
    Steps prepare(const std::vector<Node>& nodes, const std::vector<ValueId>& inputs,
                  const std::vector<ValueId>& outputs, std::vector<ValueId>& used) {
        const uint32_t list = ++lists_;
        Steps prepared{{}, inputs, outputs, inputs};
        prepared.steps.reserve(nodes.size());
        std::vector<ValueId> defined;
        for (ValueId id : inputs) owner_[id] = list;
        for (size_t n = 0; n < nodes.size(); ++n) {
            const Node& node = nodes[n];
            const bool is_call = node.control == ControlFlow::None;
            Step& step = prepared.steps.emplace_back();
            step.node = &node;
            step.op = is_call ? operators_[node.op] : nullptr;
            const auto use = [&](ValueId id) {
                if (owner_[id] == list) last_[id] = n;
                else used.push_back(id);
            };
            for (uint32_t i = 0; i < node.arguments.size(); ++i) {
                const Argument& argument = node.arguments[i];
                step.arguments.push_back(boxed_argument(argument));
                if (auto* one = std::get_if<Use>(&argument)) {
                    step.tensors.emplace_back(i, one->value);
                    use(one->value);
                } else if (auto* ids = std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
                    step.lists.emplace_back(i, *ids);
                    for (const auto& id : *ids)
                        if (id) use(*id);
                }
            }
            for (const Block& block : node.blocks) {
                std::vector<ValueId> inner;
                step.blocks.push_back(prepare(block.nodes, block.inputs, block.outputs, inner));
                for (ValueId id : inner) use(id);
            }
            // An unused result is released at once.
            const auto define = [&](ValueId id) {
                owner_[id] = list;
                last_[id] = n;
                defined.push_back(id);
            };
            for (const Result& result : node.results) {
                if (auto* one = std::get_if<ValueId>(&result)) define(*one);
                else if (auto* ids = std::get_if<std::vector<ValueId>>(&result))
                    for (ValueId id : *ids) define(id);
            }
        }
        for (ValueId id : outputs) {
            if (owner_[id] != list) used.push_back(id);
            else if (!kept_[id]) prepared.released.push_back(id);
            kept_[id] = kept_[id] || owner_[id] == list;
        }
        for (ValueId id : defined)
            if (!kept_[id]) prepared.steps[last_[id]].released.push_back(id);
        return prepared;
    }

    const Graph& graph_;
    std::vector<const Operator*> operators_;
    std::vector<uint32_t> owner_;  // the list that defines each value; 0 for inputs and constants
    std::vector<size_t> last_;  // for each value, the last node of the value's list that uses the value
    std::vector<bool> kept_;  // whether the value is an output of its list
    uint32_t lists_ = 0;
};

}  // namespace

void Program::State::prepare() {
    verify(graph);
    check_constants();
    steps = Preparation(graph).run();
}

// Whoever has a constant may give it other memory, with another shape or dtype.
void Program::State::check_constants() const {
    RL_CHECK(constants.size() == graph.constants.size(), throw_value, "program: got %zu constants, needs %zu",
             constants.size(), graph.constants.size());
    for (size_t i = 0; i < constants.size(); ++i) {
        const Constant& constant = graph.constants[i];
        const TensorType& type = graph.values[constant.value].type;
        RL_CHECK(constants[i].defined() && has_type(constants[i], type), throw_value,
                 "program: constant '%s' must be %s, got %s", constant.name.c_str(), to_text(type).c_str(),
                 type_of(constants[i]).c_str());
    }
}

// Checks the sizes of the inputs, and returns the values of the expressions.
Sizes Program::State::bind(TensorList inputs) const {
    std::vector<int64_t> symbols;
    for (const Symbol& symbol : graph.symbols) {
        std::optional<int64_t> value;
        for (const auto& [input, dim, scale, offset] : symbol.occurrences) {
            const Tensor& t = inputs[input];
            const std::string& name = graph.inputs[input].name;
            RL_CHECK(t.defined() && static_cast<int64_t>(dim) < t.dim(), throw_value,
                     "program: input '%s' must have %zu dimensions, got %s", name.c_str(),
                     graph.values[graph.inputs[input].value].type.sizes.size(), type_of(t).c_str());
            const int64_t size = t.sizes()[dim];
            const int64_t here = (size - offset) / scale;
            RL_CHECK(size >= offset && here * scale + offset == size, throw_value,
                     "program: dimension %u of input '%s' is %lld, but must be %lld*%s%+lld", dim,
                     name.c_str(), static_cast<long long>(size), static_cast<long long>(scale),
                     symbol.name.c_str(), static_cast<long long>(offset));
            RL_CHECK(here >= symbol.least && here <= symbol.most, throw_value,
                     "program: size '%s' is %lld in dimension %u of input '%s', but must be from %lld to "
                     "%lld",
                     symbol.name.c_str(), static_cast<long long>(here), dim, name.c_str(),
                     static_cast<long long>(symbol.least), static_cast<long long>(symbol.most));
            RL_CHECK(
                !value || *value == here, throw_value,
                "program: size '%s' is %lld in dimension %u of input '%s', but %lld in another dimension",
                symbol.name.c_str(), static_cast<long long>(here), dim, name.c_str(),
                static_cast<long long>(*value));
            value = here;
        }
        symbols.push_back(*value);
    }
    return evaluate(graph, symbols);
}

void Program::State::expect(const Step& step, size_t number, ValueId id, const Tensor& t,
                            const Sizes& sizes) const {
    const ValueInfo& value = graph.values[id];
    RL_CHECK(
        t.defined() && has_type(t, value, sizes), throw_runtime,
        "program: %s returned %s, but %s when the program was captured\n"
        "hint: change the captured function so that no size or dtype depends on the values of its inputs",
        graph.describe(*step.node, number).c_str(), type_of(t).c_str(),
        to_text(type_in(value, sizes)).c_str());
}

// Sets the stack to the arguments of a call.
void Program::State::fill(const Step& step, const Values& values, const Sizes& sizes, Stack& stack) const {
    stack = step.arguments;
    for (const auto& [position, id] : step.tensors) stack[position] = Value(values[id]);
    for (const auto& [position, ids] : step.lists) {
        std::vector<Tensor> list;
        for (const auto& id : ids) list.push_back(id ? values[*id] : Tensor());
        stack[position] = Value(std::move(list));
    }
    for (const auto& [position, item, expression] : step.node->moving) {
        if (auto* list = stack[position].as<std::vector<int64_t>>()) (*list)[item] = sizes[expression];
        else stack[position] = Value(sizes[expression]);
    }
}

void Program::State::store(Values& values, const Step& step, size_t number, Stack& results,
                           const Sizes& sizes) const {
    const std::vector<Result>& wanted = step.node->results;
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (auto* one = std::get_if<ValueId>(&wanted[i])) {
            auto* t = results[i].as<Tensor>();
            expect(step, number, *one, t ? *t : Tensor(), sizes);
            values[*one] = std::move(*t);
        } else if (auto* ids = std::get_if<std::vector<ValueId>>(&wanted[i])) {
            auto* list = results[i].as<std::vector<Tensor>>();
            RL_CHECK(list && list->size() == ids->size(), throw_runtime,
                     "program: %s returned %zu tensors, but %zu when the program was captured",
                     graph.describe(*step.node, number).c_str(), list ? list->size() : 0, ids->size());
            for (size_t k = 0; k < ids->size(); ++k) {
                expect(step, number, (*ids)[k], (*list)[k], sizes);
                values[(*ids)[k]] = std::move((*list)[k]);
            }
        }
    }
}

void Program::State::run_steps(const Steps& list, Values& values, const Sizes& sizes) const {
    Stack stack;
    for (size_t n = 0; n < list.steps.size(); ++n) {
        const Step& step = list.steps[n];
        std::optional<GradMode> mode;
        if (step.node->gradients && !graph.below_gradients) mode.emplace(*step.node->gradients);
        try {
            if (step.op) {
                fill(step, values, sizes, stack);
                call_boxed(*step.op, stack);
            } else {
                for (Tensor& t : run_control_flow(step, values, sizes)) stack.emplace_back(std::move(t));
            }
        } catch (const Error& error) {
            throw Error(error.kind(), std::string(error.what()) + "\nin " + graph.describe(*step.node, n) +
                                          " of the program");
        }
        store(values, step, n, stack, sizes);
        stack.clear();
        for (ValueId id : step.released) values[id] = Tensor();
    }
}

std::vector<Tensor> Program::State::run_block(const Steps& block, TensorList inputs, Values& values,
                                              const Sizes& sizes) const {
    for (size_t i = 0; i < inputs.size(); ++i) values[block.inputs[i]] = inputs[i];
    run_steps(block, values, sizes);
    std::vector<Tensor> outputs;
    for (ValueId id : block.outputs) outputs.push_back(values[id]);
    for (ValueId id : block.released) values[id] = Tensor();
    return outputs;
}

// Runs a node of control flow: Note [Control flow] in graph.h.
std::vector<Tensor> Program::State::run_control_flow(const Step& step, Values& values,
                                                     const Sizes& sizes) const {
    if (step.node->control == ControlFlow::Cond) {
        const bool chosen = is_true("cond(pred)", values[step.tensors[0].second]);
        return run_block(step.blocks[chosen ? 0 : 1], {}, values, sizes);
    }
    const auto tensors_of = [&](size_t list) {
        std::vector<Tensor> tensors;
        for (const auto& id : step.lists[list].second) tensors.push_back(values[*id]);
        return tensors;
    };
    std::vector<Tensor> carried = tensors_of(0);
    if (step.node->control == ControlFlow::WhileLoop) {
        bool any = false;
        while (is_true("while_loop(cond_fn)", run_block(step.blocks[0], carried, values, sizes)[0])) {
            check_interrupted();
            carried = run_block(step.blocks[1], carried, values, sizes);
            any = true;
        }
        if (!any)
            for (Tensor& t : carried) t = ops::clone(t);
        return carried;
    }
    const std::vector<Tensor> xs = tensors_of(1);
    const size_t count = carried.size(), length = static_cast<size_t>(xs[0].sizes()[0]);
    std::vector<std::vector<Tensor>> rows(step.node->results.size() - count);
    for (size_t i = 0; i < length; ++i) {
        check_interrupted();
        for (const Tensor& x : xs) carried.push_back(ops::select(x, 0, static_cast<int64_t>(i)));
        std::vector<Tensor> made = run_block(step.blocks[0], carried, values, sizes);
        for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(std::move(made[count + k]));
        made.resize(count);
        carried = std::move(made);
    }
    for (const std::vector<Tensor>& column : rows) carried.push_back(ops::stack(column, 0));
    return carried;
}

Program::Program(Graph graph, std::vector<Tensor> constants) {
    auto state = std::make_shared<State>();
    state->graph = std::move(graph);
    state->constants = std::move(constants);
    state->prepare();
    state_ = std::move(state);
}
Program::Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Program Program::generalize(const std::vector<Program>& programs, std::vector<Symbol> symbols,
                            const std::vector<std::vector<int64_t>>& values, std::vector<int64_t>* undecided,
                            const std::vector<std::vector<int64_t>>& tried) {
    std::vector<Graph> graphs;
    for (const Program& program : programs) graphs.push_back(program.graph());
    Graph graph = graph::generalize(graphs, std::move(symbols), values, undecided, tried);
    StagesOff untraced(kAllStages);
    for (size_t i = 0; i < graph.constants.size(); ++i)
        for (const Program& program : programs) {
            const Tensor &first = programs[0].constants()[i], &other = program.constants()[i];
            RL_CHECK(
                first.impl()->data() == other.impl()->data() || ops::equal(first, other), throw_runtime,
                "capture: the values of constant '%s' differ between captures with different sizes, but a program stores only one value of each constant\nhint: create the tensor with an operator, such as arange, instead of from Python data",
                graph.constants[i].name.c_str());
        }
    const TensorList constants = programs[0].constants();
    return {std::move(graph), {constants.begin(), constants.end()}};
}

Program Program::load(const std::string& path) {
    Contents contents = read_file(path);
    return {std::move(contents.graph), std::move(contents.constants)};
}
Program Program::from_bytes(const std::string& bytes) {
    Contents contents = read_bytes(bytes);
    return {std::move(contents.graph), std::move(contents.constants)};
}
void Program::save(const std::string& path) const {
    state_->check_constants();
    write_file(state_->graph, state_->constants, path);
}
std::string Program::to_bytes() const {
    state_->check_constants();
    return write_bytes(state_->graph, state_->constants);
}

Program Program::with_metadata(std::map<std::string, std::string> metadata) const {
    Graph graph = state_->graph;
    graph.metadata = std::move(metadata);
    return {std::move(graph), state_->constants};
}

const Graph& Program::graph() const { return state_->graph; }
TensorList Program::constants() const { return state_->constants; }

std::vector<Tensor> Program::run(TensorList inputs) const {
    const State& state = *state_;
    const Graph& graph = state.graph;
    RL_CHECK(inputs.size() == graph.inputs.size(), throw_value, "program: got %zu inputs, needs %zu",
             inputs.size(), graph.inputs.size());
    const Sizes sizes = state.bind(inputs);
    Values values(graph.values.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Input& input = graph.inputs[i];
        const ValueInfo& wanted = graph.values[input.value];
        RL_CHECK(inputs[i].defined() && has_type(inputs[i], wanted, sizes), throw_value,
                 "program: input '%s' must be %s, got %s", input.name.c_str(),
                 to_text(type_in(wanted, sizes)).c_str(), type_of(inputs[i]).c_str());
        values[input.value] = inputs[i];
    }
    for (size_t i = 0; i < state.constants.size(); ++i) values[graph.constants[i].value] = state.constants[i];
    std::optional<GradMode> off;
    if (graph.below_gradients) off.emplace(false);
    state.run_steps(state.steps, values, sizes);
    std::vector<Tensor> outputs;
    for (ValueId output : graph.outputs) outputs.push_back(values[output]);
    return outputs;
}

}  // namespace rushlight::graph
