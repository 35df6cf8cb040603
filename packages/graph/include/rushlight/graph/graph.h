// A program as data: operators in the order of their calls, on values that are each defined once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rushlight/complex.h"
#include "rushlight/dispatch.h"

namespace rushlight::graph {

/// Index of a value, in Graph::values.
using ValueId = uint32_t;

/// The properties of a tensor before the program runs.
struct TensorType {
    DType dtype = DType::Float32;
    Device device{};
    std::vector<int64_t> sizes;
    friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// A size of inputs that may differ from run to run.
struct Symbol {
    /// The dimension of an input that is `scale * symbol + offset`.
    struct Place {
        uint32_t input, dim;
        int64_t scale = 1, offset = 0;
    };
    std::string name;
    int64_t least, most;  // inclusive
    int64_t example;      // in the sizes and integers of the graph
    std::vector<Place> places;
};

/// An integer that is computed of symbols. Its parts come before it in Graph::expressions.
struct Expression {
    enum class Kind : uint8_t { Constant, Symbol, Add, Subtract, Multiply, FloorDivide };
    Kind kind = Kind::Constant;
    int64_t number = 0;  // a constant, or the index of a symbol
    uint32_t left = 0, right = 0;
};

/// An integer of a graph that an expression stands for: item `item` of what is at `position`.
struct Moving {
    uint32_t position, item, expression;
};

struct ValueInfo {
    TensorType type;
    /// The first value with the same memory; the value itself where it is the first. Results of views and of in-place
    /// operators share memory with an argument.
    ValueId memory = 0;
    std::vector<Moving> moving;  // item: the dimension; position is 0
};

/// A tensor among the arguments.
struct Use {
    ValueId value;
    friend bool operator==(Use, Use) = default;
};
/// An argument of a call. A number for a Scalar keeps its category: bool, int64_t, double or Complex.
using Argument = std::variant<std::monostate, bool, int64_t, double, Complex<double>, std::string, DType,
                              Device, Use, std::vector<int64_t>, std::vector<std::optional<ValueId>>>;
/// Nothing (an auxiliary result that was not made), a tensor, or a list of them.
using Result = std::variant<std::monostate, ValueId, std::vector<ValueId>>;

/// An operator that the program calls. The hash is that of its schema.
struct OperatorRef {
    std::string name;
    uint64_t hash;
};

// Note [Control flow]
// A node that is not a call of an operator has blocks: lists of nodes of their own. What a block's nodes define is visible in
// it and in the blocks of its nodes; they use its inputs, and all that is in scope where the node stands. So a branch names
// the tensors that it uses from outside as any other node does, and only what changes from one iteration to the next is an
// input.
//
//   Cond       arguments: pred                two blocks without inputs, of which one runs; their outputs are the results
//   WhileLoop  arguments: [carried]           blocks `condition` (one bool) and `body`, whose inputs are the carried values;
//                                             the body's outputs are carried on, and are the results after the last iteration
//   Scan       arguments: [carried], [xs]     a block, whose inputs are the carried values and a slice of each of xs along the
//                                             first dimension; outputs: the next carried values, then a row of each other result
//
// A block writes only to memory that its own nodes made, and its outputs have memory of their own. So the iterations of a loop
// do not see one another but through what is carried, and a result shares memory with no argument.
enum class ControlFlow : uint8_t { None, Cond, WhileLoop, Scan };
struct Block;

/// One call of an operator, or control flow.
struct Node {
    uint32_t op = 0;  // in Graph::operators; of no meaning for control flow
    std::vector<Argument> arguments;
    std::vector<Result> results;
    std::vector<uint32_t> writes;  // positions of the arguments whose memory it writes
    std::vector<Moving> moving;    // position: of the argument; item: in a list, else 0
    bool random = false;           // draws from the default generator
    uint32_t line = 0,
             module = 0;  // in Graph::texts: "model.py:12" and "features.0", "" if it is unknown
    ControlFlow control = ControlFlow::None;
    std::vector<Block> blocks;
};

/// A branch, or what a loop does again and again.
struct Block {
    std::vector<ValueId> inputs;
    std::vector<Node> nodes;
    std::vector<ValueId> outputs;
};

struct Input {
    std::string name;
    ValueId value;
};

enum class ConstantKind : uint8_t { Parameter, Buffer, Constant };

/// A tensor that comes with the program.
struct Constant {
    std::string name;
    ValueId value;
    ConstantKind kind;
    bool written;                  // by a node: it is state, which outlives a run
    std::vector<int64_t> strides;  // empty: row-major
};

struct Graph {
    std::vector<Symbol> symbols;
    std::vector<Expression> expressions;
    std::vector<OperatorRef> operators;
    std::vector<ValueInfo> values;
    std::vector<Input> inputs;
    std::vector<Constant> constants;
    std::vector<Node> nodes;
    std::vector<ValueId> outputs;
    std::vector<std::string> texts{""};
    bool below_gradients = false;  // gradients are a part of it: a run records none
    std::string writer;  // "rushlight 0.1.0": what captured it
    /// For users of programs, kept unchanged: how Python's arguments and results are built of tensors.
    std::map<std::string, std::string> metadata;

    /// "node 3 (conv2d at model.py:12 in features.0)", for errors. `number`: in its list of nodes.
    RL_API std::string describe(const Node& node, size_t number) const;
    std::string describe(size_t node) const { return describe(nodes[node], node); }
};

/// "cond", "while_loop" or "scan"; null for None.
RL_API const char* name(ControlFlow control);

/// RuntimeError where the library lacks an operator of the program, or has it with another schema.
RL_API std::vector<const Operator*> resolve(const Graph& graph);
/// ValueError that names the node where a graph is not one: a value that is used before it is defined or defined twice, an
/// index out of range, an argument of a different kind from the operator's schema has, a type that no tensor can have.
RL_API void verify(const Graph& graph);

/// The numbers of all expressions, for these values of the symbols. ValueError for a division by zero, and beyond int64.
RL_API std::vector<int64_t> evaluate(const Graph& graph, const std::vector<int64_t>& symbols);

/// One graph for several of the same program, which were captured with other sizes. Integers that differ are explained by
/// expressions of the symbols.
///
/// `values` has, for each graph, the value of each symbol; those of the first are the symbols' examples. RuntimeError that names the
/// lines where the graphs call other operators, or where an integer is not explained.
RL_API Graph generalize(const std::vector<Graph>& graphs, std::vector<Symbol> symbols,
                        const std::vector<std::vector<int64_t>>& values);

/// The bytes that the results of a run need, without inputs, constants and the operators' scratch memory. A result's memory
/// is alive from the node that allocates it to the last node that uses it.
struct MemoryPlan {
    int64_t peak = 0;   // the largest sum of memory that is alive at the same time
    int64_t block = 0;  // the size of one block that holds all results
    std::vector<int64_t>
        offsets;  // of each value in it; -1: inputs, constants, and what is in blocks of control flow
};
/// Returns the plan for a run in which the symbols have the values `symbols`; by default those of the capture.
RL_API MemoryPlan plan_memory(const Graph& graph, const std::vector<int64_t>& symbols = {});

/// Returns the graph as text, which `parse` reads: a line for each input, size that changes, constant and call.
RL_API std::string to_text(const Graph& graph);
/// Returns the graph whose text `text` is, without metadata. Raises ValueError, which names the line, for other texts.
RL_API Graph parse(const std::string& text);
/// Returns a drawing of the graph as SVG: a box for each input and call, with arrows to the calls that use its results.
RL_API std::string to_svg(const Graph& graph);
/// Returns a line for each difference between two graphs, other than metadata, source lines and modules: `-` for what only the
/// first has, `+` for what only the second has, and `~` for a call of the same operator with other arguments. Values are equal
/// if equal calls made them, whatever their numbers.
RL_API std::vector<std::string> differences(const Graph& a, const Graph& b);
/// The graph as JSON, in the form that files have (docs/programs.md).
RL_API std::string to_json(const Graph& graph);
/// "float32[1, 3, 8, 8]", with the device where it is not the CPU.
RL_API std::string to_text(const TensorType& type);
/// "2*batch+1".
RL_API std::string to_text(const Graph& graph, const Expression& expression);

}  // namespace rushlight::graph
