// Reads graphs from the text that text.cpp writes.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "encoding.h"
#include "rushlight/abi.h"
#include "rushlight/graph/graph.h"
#include "rushlight/schema.h"
#include "sizes.h"
#include "text.h"

namespace rushlight::graph {
namespace {

constexpr int kDeepest = 64;  // limit of nested parentheses and of nested blocks

// Reads one line from left to right.
class Line {
  public:
    Line(std::string_view text, size_t number) : text_(text), number_(number) {}

    [[noreturn]] void fail(const std::string& needs) const {
        throw_value("graph: line %zu, column %zu: expected %s: %.*s", number_, at_ + 1, needs.c_str(),
                    static_cast<int>(std::min<size_t>(text_.size(), 200)), text_.data());
    }
    void skip_spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool at_end() {
        skip_spaces();
        return at_ == text_.size();
    }
    char peek() {
        skip_spaces();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    /// Skips `token` if it comes next. Returns whether it was skipped.
    bool take(std::string_view token) {
        skip_spaces();
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    void need(std::string_view token) {
        if (!take(token)) fail("'" + std::string(token) + "'");
    }
    bool is_word(std::string_view word) {
        const size_t before = at_;
        const bool same = identifier() == word;
        at_ = before;
        return same;
    }
    bool take_word(std::string_view word) {
        skip_spaces();
        if (!is_word(word)) return false;
        return take(word);
    }
    /// Reads letters, digits, '_' and, if `dots` is true, '.'. Returns "" if there are none.
    std::string_view identifier(bool dots = false) {
        skip_spaces();
        const size_t start = at_;
        const auto fits = [&](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                   (at_ > start && ((c >= '0' && c <= '9') || (dots && c == '.')));
        };
        while (at_ < text_.size() && fits(text_[at_])) ++at_;
        return text_.substr(start, at_ - start);
    }
    int64_t integer() {
        skip_spaces();
        int64_t number = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
        if (error != std::errc()) fail("an integer");
        at_ = static_cast<size_t>(end - text_.data());
        return number;
    }
    uint32_t index() {
        const int64_t number = integer();
        if (number < 0 || number > std::numeric_limits<uint32_t>::max()) fail("an index");
        return static_cast<uint32_t>(number);
    }
    /// Reads a number in Python's notation; returns nothing if there is none. Integers have no '.', exponent or
    /// letters.
    std::optional<std::variant<int64_t, double>> number() {
        skip_spaces();
        size_t end = at_;
        const auto is_digit = [&] { return end < text_.size() && text_[end] >= '0' && text_[end] <= '9'; };
        if (end < text_.size() && text_[end] == '-') ++end;
        for (const std::string_view word : {"nan", "inf"})
            if (text_.substr(end).starts_with(word) && !is_letter(end + word.size())) {
                const bool negative = text_[at_] == '-';
                const double v = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                               : std::numeric_limits<double>::infinity();
                at_ = end + word.size();
                return negative ? -v : v;
            }
        if (!is_digit()) return std::nullopt;
        bool floating = false;
        while (end < text_.size()) {
            const char c = text_[end];
            const bool sign = (c == '+' || c == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
            if (c == '.' || c == 'e' || c == 'E' || sign) floating = true;
            else if (!is_digit()) break;
            ++end;
        }
        if (!floating) return integer();
        double v = 0;
        const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + end, v);
        // Numbers too small for a double are errors: they would become 0, and to_text never writes them.
        if (error != std::errc() || stop != text_.data() + end) fail("a float");
        at_ = end;
        return v;
    }
    std::string string() {
        need("'");
        std::string out;
        while (at_ < text_.size() && text_[at_] != '\'') {
            char c = text_[at_++];
            if (c == '\\') {
                if (at_ == text_.size()) break;
                c = text_[at_++];
                if (c == 'x') {
                    unsigned byte = 0;
                    const char* first = text_.data() + at_;
                    const char* last = text_.data() + std::min(at_ + 2, text_.size());
                    if (const auto [end, error] = std::from_chars(first, last, byte, 16);
                        error != std::errc() || end != first + 2)
                        fail("two hexadecimal digits");
                    at_ += 2;
                    c = static_cast<char>(byte);
                }
            }
            out += c;
        }
        need("'");
        return out;
    }
    /// Reads a text in quotes, or an unquoted text up to `stop` or the end.
    std::string text_until(std::string_view stop) {
        if (peek() == '\'') return string();
        const size_t end = std::min(text_.find(stop, at_), text_.size());
        std::string out(text_.substr(at_, end - at_));
        at_ = end;
        return out;
    }
    /// Reads items separated by commas up to and including `close`.
    template <class F>
    void list(std::string_view close, F&& item) {
        if (take(close)) return;
        do item();
        while (take(","));
        need(close);
    }

  private:
    bool is_letter(size_t at) const {
        const char c = at < text_.size() ? text_[at] : '\0';
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    }

    std::string_view text_;
    size_t number_, at_ = 0;
};

class Parser {
  public:
    explicit Parser(std::string_view text) {
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find('\n', at), text.size());
            const std::string_view line = text.substr(at, end - at);
            if (line.find_first_not_of(' ') != line.npos) lines_.push_back({line, numbers_});
            ++numbers_;
            at = end + 1;
        }
    }

    Graph run() {
        Line head = next("program(");
        head.need("program(");
        if (head.take("#")) {
            head.need(kBelowNote);
            graph_.below_gradients = true;
        }
        need_end(head);
        // Symbols are declared after the inputs but used in their types. So skip the inputs and read the symbols
        // first.
        const size_t first_input = at_;
        while (!next(")").take(")")) {}
        const size_t symbols = at_;
        while (at_ < lines_.size() && is_symbol(lines_[at_])) symbol(next("a size"));
        const size_t body = at_;
        for (at_ = first_input; at_ + 1 < symbols;) input(next("an input"));
        at_ = body;
        while (at_ < lines_.size() && is_constant(lines_[at_])) constant(next("a constant"));
        nodes(graph_.nodes, graph_.outputs, 0);
        if (at_ < lines_.size()) next("").fail("the end of the text after the results");
        fill_in();
        graph_.writer = "rushlight " RUSHLIGHT_VERSION;
        verify(graph_);
        return std::move(graph_);
    }

  private:
    Line next(const char* needs) {
        if (at_ == lines_.size()) throw_value("graph: expected '%s' at the end of the text", needs);
        return lines_[at_++];
    }
    static void need_end(Line& line) {
        if (!line.at_end()) line.fail("the end of the line");
    }

    // --- sizes: "(width+1)//2" ---

    static bool is_symbol(Line line) {
        if (line.peek() == '\'') line.string();
        else if (line.identifier().empty()) return false;
        return line.take(":");
    }
    std::string symbol_name(Line& line) {
        if (line.peek() == '\'') return line.string();
        const std::string_view name = line.identifier();
        if (name.empty()) line.fail("the name of a size");
        return std::string(name);
    }
    // Reads the text that symbol_text writes.
    void symbol(Line line) {
        Symbol symbol{symbol_name(line), 0, 0, 0, {}};
        line.need(":");
        symbol.least = line.integer();
        line.need("to");
        symbol.most = line.integer();
        line.need("#");
        symbol.example = line.integer();
        line.need("in the capture;");
        do {
            line.need("input");
            Symbol::Occurrence occurrence{line.index(), 0, 1, 0};
            line.need("[");
            occurrence.dim = line.index();
            line.need("]");
            if (line.take("=")) {
                occurrence.scale = line.integer();
                line.need("*");
                if (symbol_name(line) != symbol.name)
                    line.fail("the name of the size that this line declares");
                line.take("+");
                occurrence.offset = line.integer();
            }
            symbol.occurrences.push_back(occurrence);
        } while (line.take(","));
        need_end(line);
        const auto number = static_cast<int64_t>(graph_.symbols.size());
        if (!symbols_.emplace(symbol.name, number).second) line.fail("a name that no other size has");
        graph_.symbols.push_back(std::move(symbol));
    }

    uint32_t expression(Expression e) {
        const auto key = std::make_tuple(e.kind, e.number, e.left, e.right);
        const auto [at, added] = expressions_.emplace(key, static_cast<uint32_t>(graph_.expressions.size()));
        if (added) graph_.expressions.push_back(e);
        return at->second;
    }
    uint32_t factor(Line& line, int depth) {
        if (depth > kDeepest) line.fail("fewer nested parentheses");
        if (line.take("(")) {
            const uint32_t inner = sum(line, depth + 1);
            line.need(")");
            return inner;
        }
        const char c = line.peek();
        if (c == '-' || (c >= '0' && c <= '9'))
            return expression({Expression::Kind::Constant, line.integer()});
        const auto found = symbols_.find(symbol_name(line));
        if (found == symbols_.end()) line.fail("a size that is declared earlier");
        return expression({Expression::Kind::Symbol, found->second});
    }
    uint32_t product(Line& line, int depth) {
        uint32_t left = factor(line, depth);
        for (;;) {
            const bool divides = line.take("//");
            if (!divides && !line.take("*")) return left;
            const auto kind = divides ? Expression::Kind::FloorDivide : Expression::Kind::Multiply;
            left = expression({kind, 0, left, factor(line, depth)});
        }
    }
    uint32_t sum(Line& line, int depth) {
        uint32_t left = product(line, depth);
        for (;;) {
            const bool subtracts = line.take("-");
            if (!subtracts && !line.take("+")) return left;
            const auto kind = subtracts ? Expression::Kind::Subtract : Expression::Kind::Add;
            left = expression({kind, 0, left, product(line, depth)});
        }
    }
    // Reads an integer or an expression. An expression is added to `moving`.
    int64_t integer(Line& line, std::vector<Moving>& moving, uint32_t position, uint32_t item) {
        Line rest = line;
        if (const auto plain = rest.number(); plain && std::holds_alternative<int64_t>(*plain)) {
            const char c = rest.peek();
            if (c != '+' && c != '-' && c != '*' && c != '/') {
                line = rest;
                return std::get<int64_t>(*plain);
            }
        }
        moving.push_back({position, item, sum(line, 0)});
        return 0;  // fill_in() sets the value
    }
    std::vector<int64_t> integers(Line& line, std::vector<Moving>& moving, uint32_t position) {
        std::vector<int64_t> list;
        line.need("[");
        line.list("]", [&] {
            list.push_back(integer(line, moving, position, static_cast<uint32_t>(list.size())));
        });
        return list;
    }

    // --- values ---

    static ValueId reference(Line& line) {
        line.need("%");
        return line.index();
    }
    // Reads a value, such as "%3: float32[2] at %1".
    ValueId value(Line& line) {
        const ValueId id = reference(line);
        line.need(":");
        ValueInfo info;
        const auto dtype = dtype_named(line.identifier());
        if (!dtype) line.fail("the name of a dtype");
        info.type.dtype = *dtype;
        info.type.sizes = integers(line, info.moving, 0);
        if (line.take("@")) {
            std::string device(line.identifier());
            if (line.take(":")) device += ":" + std::to_string(line.index());
            info.type.device = parse_device(device);
        }
        info.memory = line.take_word("at") ? reference(line) : id;
        if (!values_.emplace(id, std::move(info)).second) line.fail("a value that is not yet defined");
        return id;
    }
    void input(Line line) {
        const ValueId id = value(line);
        line.need(",");
        line.need("#");
        line.skip_spaces();
        graph_.inputs.push_back({line.text_until("\n"), id});
        need_end(line);
    }
    // Whether the line declares a constant. In a line that declares a node, a call follows the equals sign.
    static bool is_constant(Line line) {
        if (line.peek() != '%') return false;
        line.text_until(" = ");
        line.take("=");
        const std::string_view kind = line.identifier();
        return std::ranges::find(kConstantKinds, kind) != std::end(kConstantKinds) && line.take("('");
    }
    void constant(Line line) {
        Constant constant{{}, value(line), ConstantKind::Constant, false, {}};
        line.need("=");
        const std::string_view kind = line.identifier();
        constant.kind = static_cast<ConstantKind>(std::ranges::find(kConstantKinds, kind) - kConstantKinds);
        line.need("(");
        constant.name = line.string();
        line.need(")");
        if (line.take("#")) {
            constant.written = line.take_word("written");
            if (constant.written) line.take(",");
            std::vector<Moving> none;
            if (line.take_word("strides")) constant.strides = integers(line, none, 0);
            if (!none.empty()) line.fail("strides that are integers");
        }
        need_end(line);
        graph_.constants.push_back(std::move(constant));
    }

    // --- nodes ---

    // Reads nodes up to and including "return", which lists the outputs.
    void nodes(std::vector<Node>& list, std::vector<ValueId>& outputs, int depth) {
        for (;;) {
            Line line = next("return");
            if (line.take_word("return")) {
                if (line.at_end()) return;
                do outputs.push_back(reference(line));
                while (line.take(","));
                return need_end(line);
            }
            list.push_back(node(line, depth));
        }
    }
    Result result(Line& line) {
        if (line.take_word("_")) return std::monostate();
        if (!line.take("[")) return value(line);
        std::vector<ValueId> ids;
        line.list("]", [&] { ids.push_back(value(line)); });
        return ids;
    }
    Node node(Line& line, int depth) {
        Node node;
        const char c = line.peek();
        if (c == '%' || c == '[' || line.is_word("_")) {
            do node.results.push_back(result(line));
            while (line.take(","));
            line.need("=");
        }
        const std::string_view name = line.identifier(true);
        line.need("(");
        for (const ControlFlow control : {ControlFlow::Cond, ControlFlow::WhileLoop, ControlFlow::Scan})
            if (name == rushlight::graph::name(control)) {
                node.control = control;
                line.list(")", [&] { node.arguments.push_back(tensors(line)); });
                line.need("{");
                note(line, node, nullptr);
                blocks(node, depth + 1);
                return node;
            }
        const Operator* op = find_operator(name);
        if (!op) line.fail("an operator of this library");
        const auto [at, added] = operators_.emplace(op, static_cast<uint32_t>(graph_.operators.size()));
        if (added) graph_.operators.push_back({op->name, op->hash});
        node.op = at->second;
        const SchemaText schema(*op);
        line.list(")", [&] {
            const size_t i = node.arguments.size();
            if (i == schema.arguments.size()) line.fail("no more arguments");
            Line named = line;
            if (named.identifier() == schema.arguments[i].name && named.take("=")) line = named;
            node.arguments.push_back(
                argument(line, schema.arguments[i].type, node.moving, static_cast<uint32_t>(i)));
        });
        note(line, node, &schema);
        return node;
    }
    void blocks(Node& node, int depth) {
        if (depth > kDeepest) next("}").fail("fewer nested blocks");
        for (Line line = next("}"); !line.take("}"); line = next("}")) {
            line.need("block(");
            Block block;
            line.list(")", [&] { block.inputs.push_back(value(line)); });
            line.need(":");
            need_end(line);
            nodes(block.nodes, block.outputs, depth);
            node.blocks.push_back(std::move(block));
        }
    }

    Argument tensors(Line& line) {
        if (!line.take("[")) return Use{reference(line)};
        std::vector<std::optional<ValueId>> ids;
        line.list("]", [&] {
            ids.push_back(line.take_word("None") ? std::nullopt : std::optional(reference(line)));
        });
        return ids;
    }
    Argument argument(Line& line, std::string_view type, std::vector<Moving>& moving, uint32_t position) {
        if (line.take_word("None")) return std::monostate();
        if (type.ends_with('?')) type.remove_suffix(1);
        if (type == "Tensor" || type == "Tensor[]" || type == "Tensor?[]" || line.peek() == '%')
            return tensors(line);
        if (type == "int[]") return integers(line, moving, position);
        if (type == "str") return line.string();
        if (type == "dtype") {
            const auto dtype = dtype_named(line.identifier());
            if (!dtype) line.fail("the name of a dtype");
            return *dtype;
        }
        if (type == "device") {
            line.need("device(");
            const Device device = parse_device(line.string());
            line.need(")");
            return device;
        }
        if (line.take_word("True")) return true;
        if (line.take_word("False")) return false;
        if (line.take("complex(")) {
            const double real = floating(line);
            line.need(",");
            const double imaginary = floating(line);
            line.need(")");
            return Complex<double>(real, imaginary);
        }
        Line rest = line;
        if (const auto number = rest.number(); number && std::holds_alternative<double>(*number)) {
            line = rest;
            return std::get<double>(*number);
        }
        return integer(line, moving, position, 0);
    }
    static double floating(Line& line) {
        const auto number = line.number();
        if (!number) line.fail("a number");
        return std::holds_alternative<double>(*number) ? std::get<double>(*number)
                                                       : static_cast<double>(std::get<int64_t>(*number));
    }

    // Reads the note of a node, such as "# writes input, random, no_grad; model.py:12 in features.0".
    void note(Line& line, Node& node, const SchemaText* schema) {
        if (line.take("#")) {
            if (schema && line.take_word("writes")) {
                do {
                    const std::string_view name = line.identifier();
                    const auto at = std::ranges::find(schema->arguments, name, &SchemaArgument::name);
                    if (at == schema->arguments.end()) line.fail("the name of an argument");
                    node.writes.push_back(static_cast<uint32_t>(at - schema->arguments.begin()));
                } while (!line.at_end() && line.peek() != ',' && line.peek() != ';');
                line.take(",");
            }
            node.random = line.take_word("random");
            if (node.random) line.take(",");
            if (line.take_word("no_grad")) node.gradients = false;
            else if (line.take_word("enable_grad")) node.gradients = true;
            line.take(";");
            line.skip_spaces();
            if (!line.at_end() && !line.is_word("in")) node.line = text(line.text_until(" in "));
            if (line.take_word("in")) {
                line.skip_spaces();
                node.module = text(line.text_until("\n"));
            }
        }
        need_end(line);
    }
    uint32_t text(const std::string& text) {
        const auto [at, added] = texts_.emplace(text, static_cast<uint32_t>(graph_.texts.size()));
        if (added) graph_.texts.push_back(text);
        return at->second;
    }

    // --- checks at the end ---

    void fill_in() {
        verify_sizes(graph_);
        std::vector<int64_t> examples;
        for (const Symbol& symbol : graph_.symbols) examples.push_back(symbol.example);
        examples = evaluate(graph_, examples);
        for (auto& [id, info] : values_) {
            if (id != graph_.values.size())
                throw_value("graph: value %%%zu is never defined", graph_.values.size());
            for (const Moving& m : info.moving) info.type.sizes[m.item] = examples[m.expression];
            graph_.values.push_back(std::move(info));
        }
        fill_in(graph_.nodes, examples);
    }
    static void fill_in(std::vector<Node>& nodes, const std::vector<int64_t>& examples) {
        for (Node& node : nodes) {
            for (const Moving& m : node.moving) {
                Argument& argument = node.arguments[m.position];
                if (auto* list = std::get_if<std::vector<int64_t>>(&argument))
                    (*list)[m.item] = examples[m.expression];
                else argument = examples[m.expression];
            }
            for (Block& block : node.blocks) fill_in(block.nodes, examples);
        }
    }

    Graph graph_;
    std::vector<Line> lines_;
    size_t numbers_ = 1, at_ = 0;
    std::map<ValueId, ValueInfo> values_;
    std::map<std::string, int64_t> symbols_;
    std::map<std::tuple<Expression::Kind, int64_t, uint32_t, uint32_t>, uint32_t> expressions_;
    std::map<const Operator*, uint32_t> operators_;
    std::map<std::string, uint32_t> texts_{{"", 0}};
};

}  // namespace

Graph parse(const std::string& text) { return Parser(text).run(); }

}  // namespace rushlight::graph
