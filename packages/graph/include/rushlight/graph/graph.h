// A program as data: a list of operator calls, on values that are each defined once.
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

/// The properties of a tensor that are known before the program runs.
struct TensorType {
    DType dtype = DType::Float32;
    Device device{};
    std::vector<int64_t> sizes;
    friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// A size of the inputs that may differ between runs.
struct Symbol {
    /// A dimension of an input whose size is `scale * symbol + offset`.
    struct Occurrence {
        uint32_t input, dim;
        int64_t scale = 1, offset = 0;
    };
    std::string name;
    int64_t least, most;  // the allowed range, inclusive
    int64_t example;      // the value in the capture, for which the graph has sizes and integers
    std::vector<Occurrence> occurrences;
};

/// An integer that is computed from symbols. Its operands come before it in Graph::expressions.
struct Expression {
    enum class Kind : uint8_t { Constant, Symbol, Add, Subtract, Multiply, FloorDivide };
    Kind kind = Kind::Constant;
    int64_t number = 0;  // a constant, or the index of a symbol
    uint32_t left = 0, right = 0;
};

/// An integer of a graph that is replaced by an expression. It is item `item` of the object at `position`.
struct Moving {
    uint32_t position, item, expression;
};

struct ValueInfo {
    TensorType type;
    /// The first value that uses the same memory. This may be the value itself. Results of views and of in-place
    /// operators share memory with an argument.
    ValueId memory = 0;
    std::vector<Moving> moving;  // `item` is the dimension, and `position` is 0
};

/// A tensor among the arguments.
struct Use {
    ValueId value;
    friend bool operator==(Use, Use) = default;
};
/// An argument of a call. A Scalar keeps its category: bool, int64_t, double or Complex.
using Argument = std::variant<std::monostate, bool, int64_t, double, Complex<double>, std::string, DType,
                              Device, Use, std::vector<int64_t>, std::vector<std::optional<ValueId>>>;
/// A result: a tensor, a list of tensors, or nothing for an auxiliary result that was not computed.
using Result = std::variant<std::monostate, ValueId, std::vector<ValueId>>;

/// An operator that the program calls, with the hash of its schema.
struct OperatorRef {
    std::string name;
    uint64_t hash;
};

// Note [Control flow]
// A node that is not an operator call has blocks, which are lists of nodes. Values that the nodes of a block define are
// visible in this block and in the blocks of its nodes. The nodes can use the inputs of the block and all values that
// are visible to the node that has the block. So a branch can use tensors from outside directly, and only values that
// change from one iteration to the next are inputs.
//
//   Cond       arguments: pred                two blocks without inputs, of which one runs; its outputs are the results
//   WhileLoop  arguments: [carried]           blocks `condition` (one bool) and `body`, whose inputs are the carried values;
//                                             the outputs of the body are the carried values of the next iteration, and
//                                             the results after the last iteration
//   Scan       arguments: [carried], [xs]     a block, whose inputs are the carried values and a slice of each of xs along the
//                                             first dimension; its outputs are the next carried values, and then a row of
//                                             each other result
//
// A block writes only to memory that its own nodes allocated, and its outputs have separate memory. So the iterations of a
// loop depend on each other only through the carried values, and no result shares memory with an argument.
enum class ControlFlow : uint8_t { None, Cond, WhileLoop, Scan };
struct Block;

/// An operator call, or control flow.
struct Node {
    uint32_t op = 0;  // index in Graph::operators; unused for control flow
    std::vector<Argument> arguments;
    std::vector<Result> results;
    std::vector<uint32_t> writes;  // positions of the arguments whose memory the node writes
    std::vector<Moving> moving;    // `position` of the argument; `item` in a list argument, otherwise 0
    bool random = false;           // whether it draws from the default generator
    // The gradient mode of a region such as `with no_grad()`. Outside of such regions a run uses the caller's mode.
    std::optional<bool> gradients;
    // Indices in Graph::texts, of texts such as "model.py:12" and "features.0". The text is "" if it is unknown.
    uint32_t line = 0, module = 0;
    ControlFlow control = ControlFlow::None;
    std::vector<Block> blocks;
};

/// A branch, or the condition or body of a loop.
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

/// A tensor that is stored in the program.
struct Constant {
    std::string name;
    ValueId value;
    ConstantKind kind;
    bool written;  // whether a node writes it; a written constant is state that persists between runs
    std::vector<int64_t> strides;  // if empty, the tensor is contiguous
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
    bool below_gradients = false;  // whether it contains gradient computations; then a run records no graph
    std::string writer;  // the version that captured it, such as "rushlight 0.1.0"
    /// Data for the users of programs, such as the structure of Python's arguments and results. It is stored unchanged.
    std::map<std::string, std::string> metadata;

    /// Returns the name of a node for errors: "node 3 (conv2d at model.py:12 in features.0)". `number` is its position in
    /// its list of nodes.
    RL_API std::string describe(const Node& node, size_t number) const;
    std::string describe(size_t node) const { return describe(nodes[node], node); }
};

/// Returns "cond", "while_loop" or "scan"; null for None.
RL_API const char* name(ControlFlow control);

/// Raises RuntimeError if the library lacks an operator of the program or has another schema for it.
RL_API std::vector<const Operator*> resolve(const Graph& graph);
/// If the graph is invalid, raises a ValueError that names the node. A graph is invalid if a value is used before it is
/// defined or defined twice, an index is out of range, an argument has another kind than in the operator's schema, or a
/// value has a type that no tensor can have.
RL_API void verify(const Graph& graph);

/// Returns the values of all expressions for these values of the symbols. Raises ValueError for a division by zero and for
/// numbers beyond int64.
RL_API std::vector<int64_t> evaluate(const Graph& graph, const std::vector<int64_t>& symbols);

/// Combines several graphs of the same program, which were captured with different sizes, into one graph. Integers that
/// differ between the graphs become expressions of the symbols.
///
/// `values` has the value of each symbol for each graph. The values for the first graph become the examples of the
/// symbols. If the graphs call different operators or no expression fits an integer, raises a RuntimeError that names
/// the lines.
///
/// Several expressions may fit an integer. If `undecided` is not null, it is set to values of the symbols for which such
/// expressions have different values, so that a further graph with these sizes decides between them. It is set to an empty
/// list if there are no such values near the examples that are not in `values` or `tried`.
RL_API Graph generalize(const std::vector<Graph>& graphs, std::vector<Symbol> symbols,
                        const std::vector<std::vector<int64_t>>& values,
                        std::vector<int64_t>* undecided = nullptr,
                        const std::vector<std::vector<int64_t>>& tried = {});

/// The number of bytes that the results of a run need, without inputs, constants and the operators' scratch memory.
/// The memory of a result is live from the node that allocates it to the last node that uses it. A plan is an estimate for
/// programs that must know the memory of a run before it. Runs allocate each result separately (decision 0083).
struct MemoryPlan {
    int64_t peak = 0;  // the largest number of bytes that are live at the same time
    int64_t block = 0;  // the size of one block that holds all results
    // The offset of each value in the block; -1 for inputs, constants and values in blocks of control flow.
    std::vector<int64_t> offsets;
};
/// Returns the plan for a run in which the symbols have the values `symbols`. By default, they have their values in the
/// capture.
RL_API MemoryPlan plan_memory(const Graph& graph, const std::vector<int64_t>& symbols = {});

/// Returns the graph as text, which `parse` reads: a line for each input, size that changes, constant and call.
RL_API std::string to_text(const Graph& graph);
/// Returns the graph that `text` represents, without metadata. For an invalid text, raises a ValueError that names the
/// line.
RL_API Graph parse(const std::string& text);
/// Returns a drawing of the graph as SVG: a box for each input and call, with arrows to the calls that use its results.
RL_API std::string to_svg(const Graph& graph);
/// Returns a line for each difference between two graphs, other than metadata, source lines and modules: `-` for a line that
/// only the first graph has, `+` for a line that only the second has, and `~` for a call of the same operator with
/// other arguments. Two values are equal if equal calls compute them, even if the values have different numbers.
RL_API std::vector<std::string> differences(const Graph& a, const Graph& b);
/// Returns the graph as JSON, as it is stored in program files (docs/programs.md).
RL_API std::string to_json(const Graph& graph);
/// Returns a type as text, such as "float32[1, 3, 8, 8]", with the device if it is not the CPU.
RL_API std::string to_text(const TensorType& type);
/// Returns an expression as text, such as "2*batch+1".
RL_API std::string to_text(const Graph& graph, const Expression& expression);

}  // namespace rushlight::graph
