// Draws a graph as SVG, from top to bottom.
#include <algorithm>
#include <map>

#include "rushlight/graph/graph.h"
#include "text.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

// Sizes in pixels. The font is monospaced.
constexpr int kLetter = 7, kLine = 16, kPad = 8, kGap = 24;
constexpr size_t kMostLetters = 60;

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out;
}

// Shortens the text to at most kMostLetters bytes, at the boundary of a UTF-8 character.
std::string shortened(const std::string& text) {
    if (text.size() <= kMostLetters) return text;
    size_t end = kMostLetters;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end) + "…";
}

struct Rect {
    int x = 0, y = 0, width = 0, height = 0;
};

// A drawing of a list of nodes with its inputs and outputs. Its upper left corner is at (0, 0).
struct Drawing {
    std::string svg;
    int width = 0, height = 0;
};

class Painter {
  public:
    explicit Painter(const Graph& graph) : graph_(graph) {
        for (const Constant& constant : graph.constants) names_[constant.value] = constant.name;
    }

    Drawing list(const std::vector<Node>& nodes, const std::vector<std::pair<ValueId, std::string>>& inputs,
                 const std::vector<ValueId>& outputs) {
        std::vector<Box> boxes;
        // For a value: the box that defines it, and the last box that uses its memory.
        std::map<ValueId, size_t> maker, last;
        const auto touch = [&](Box& box, ValueId id, bool edge) {
            if (const auto at = maker.find(id); at != maker.end()) {
                box.layer = std::max(box.layer, boxes[at->second].layer + 1);
                if (edge) box.from.push_back(at->second);
            }
        };
        for (const auto& [id, name] : inputs) {
            maker[id] = last[graph_.values[id].memory] = boxes.size();
            boxes.push_back(text_box({name, type_text(graph_, id)}, "input"));
        }
        for (const Node& node : nodes) {
            Box box = node_box(node);
            each_use(node, [&](ValueId id) { touch(box, id, true); });
            for (const Block& block : node.blocks)
                inner_uses(block, [&](ValueId id) { touch(box, id, true); });
            // Order boxes by memory: a write comes after earlier reads and before later reads.
            const auto order = [&](ValueId id) {
                const auto at = last.find(graph_.values[id].memory);
                if (at == last.end()) return;
                box.layer = std::max(box.layer, boxes[at->second].layer + 1);
            };
            for (uint32_t position : node.writes) each_use(node.arguments[position], order);
            each_use(node, [&](ValueId id) { last[graph_.values[id].memory] = boxes.size(); });
            each_result(node, [&](ValueId id) { maker[id] = last[graph_.values[id].memory] = boxes.size(); });
            boxes.push_back(std::move(box));
        }
        Box end = text_box({"return " + names_text(outputs)}, "output");
        for (ValueId id : outputs) touch(end, id, true);
        for (const Box& box : boxes) end.layer = std::max(end.layer, box.layer + 1);
        boxes.push_back(std::move(end));
        return arranged(boxes);
    }

  private:
    struct Box {
        Drawing inside;
        Rect rect;
        int layer = 0;
        std::vector<size_t> from;  // boxes whose values this box uses
    };

    template <class F>
    static void inner_uses(const Block& block, const F& take) {
        for (const Node& node : block.nodes) {
            each_use(node, take);
            for (const Block& inner : node.blocks) inner_uses(inner, take);
        }
    }

    static Drawing text(const std::vector<std::string>& lines) {
        Drawing drawing;
        size_t letters = 0;
        int y = 0;
        for (const std::string& line : lines) {
            const std::string shown = shortened(line);
            letters = std::max(letters, shown.size());
            y += kLine;
            drawing.svg +=
                "<text x=\"0\" y=\"" + std::to_string(y - 4) + "\">" + escaped(shown) + "</text>\n";
        }
        drawing.width = static_cast<int>(letters) * kLetter;
        drawing.height = y;
        return drawing;
    }
    static std::string moved(const Drawing& drawing, int x, int y) {
        return "<g transform=\"translate(" + std::to_string(x) + " " + std::to_string(y) + ")\">\n" +
               drawing.svg + "</g>\n";
    }
    static Box framed(const Drawing& inside, const char* kind) {
        Box box;
        box.rect.width = inside.width + 2 * kPad;
        box.rect.height = inside.height + 2 * kPad;
        box.inside.svg = std::string("<rect class=\"") + kind + "\" width=\"" +
                         std::to_string(box.rect.width) + "\" height=\"" + std::to_string(box.rect.height) +
                         "\" rx=\"5\"/>\n" + moved(inside, kPad, kPad);
        return box;
    }
    static Box text_box(const std::vector<std::string>& lines, const char* kind) {
        return framed(text(lines), kind);
    }

    // Returns the box of a node. Its lines are the operator with its arguments, its results, and its module. Tensor
    // arguments are drawn as arrows instead.
    Box node_box(const Node& node) {
        std::string call = (node.control == ControlFlow::None ? graph_.operators[node.op].name
                                                              : std::string(name(node.control))) +
                           "(";
        for (uint32_t i = 0; i < node.arguments.size(); ++i) {
            const auto* use = std::get_if<Use>(&node.arguments[i]);
            const auto at = use ? names_.find(use->value) : names_.end();
            call += i ? ", " : "";
            call += at == names_.end() ? argument_text(graph_, node, i) : at->second;
        }
        std::vector<std::string> lines{call + ")"};
        each_result(node, [&](ValueId id) {
            lines.push_back("%" + std::to_string(id) + ": " + type_text(graph_, id));
        });
        if (node.module) lines.push_back("in " + graph_.texts[node.module]);
        Drawing inside = text(lines);
        if (!node.blocks.empty()) {
            int x = 0, height = 0;
            for (const Block& block : node.blocks) {
                std::vector<std::pair<ValueId, std::string>> inputs;
                for (ValueId id : block.inputs) inputs.emplace_back(id, "%" + std::to_string(id));
                const Box box = framed(list(block.nodes, inputs, block.outputs), "block");
                inside.svg += moved(box.inside, x, inside.height + kPad);
                x += box.rect.width + kPad;
                height = std::max(height, box.rect.height);
            }
            inside.width = std::max(inside.width, x - kPad);
            inside.height += height + kPad;
        }
        return framed(inside, node.random ? "random" : node.writes.empty() ? "node" : "write");
    }

    // Places the layers one below the other, each centered.
    static Drawing arranged(std::vector<Box>& boxes) {
        std::map<int, std::vector<Box*>> layers;
        for (Box& box : boxes) layers[box.layer].push_back(&box);
        Drawing all;
        for (auto& [layer, row] : layers) {
            int x = 0, height = 0;
            for (Box* box : row) {
                box->rect.x = x;
                box->rect.y = all.height;
                x += box->rect.width + kGap;
                height = std::max(height, box->rect.height);
            }
            all.width = std::max(all.width, x - kGap);
            all.height += height + kGap;
        }
        all.height -= kGap;
        for (auto& [layer, row] : layers) {
            const int used = row.back()->rect.x + row.back()->rect.width;
            for (Box* box : row) box->rect.x += (all.width - used) / 2;
        }
        for (const Box& box : boxes)
            for (size_t from : box.from) all.svg += arrow(boxes[from].rect, box.rect);
        for (const Box& box : boxes) all.svg += moved(box.inside, box.rect.x, box.rect.y);
        return all;
    }
    static std::string arrow(const Rect& from, const Rect& to) {
        const auto point = [](int x, int y) { return std::to_string(x) + " " + std::to_string(y); };
        const int x0 = from.x + from.width / 2, y0 = from.y + from.height, x1 = to.x + to.width / 2,
                  y1 = to.y;
        const int bend = (y1 - y0) / 2;
        return "<path d=\"M" + point(x0, y0) + " C" + point(x0, y0 + bend) + " " + point(x1, y1 - bend) +
               " " + point(x1, y1) + "\"/>\n";
    }

    const Graph& graph_;
    std::map<ValueId, std::string> names_;  // names of constants, which the boxes that use them show
};

}  // namespace

std::string to_svg(const Graph& graph) {
    std::vector<std::pair<ValueId, std::string>> inputs;
    for (const Input& input : graph.inputs) inputs.emplace_back(input.value, input.name);
    const Drawing drawing = Painter(graph).list(graph.nodes, inputs, graph.outputs);
    const std::string width = std::to_string(drawing.width + 2 * kGap),
                      height = std::to_string(drawing.height + 2 * kGap);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\">\n<style>\n"
           "text { font: 12px monospace; fill: #222 }\n"
           "rect { fill: #fff; stroke: #555 }\n"
           ".input, .output { fill: #e8f0fe }\n"
           ".write { fill: #fdf0d5 }\n"
           ".random { fill: #f3e5f5 }\n"
           ".block { fill: #f7f7f7 }\n"
           "path { fill: none; stroke: #888; marker-end: url(#end) }\n"
           "</style>\n<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
           "markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8\" style=\"marker-end: none\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" stroke=\"none\"/>\n<g transform=\"translate(" +
           std::to_string(kGap) + " " + std::to_string(kGap) + ")\">\n" + drawing.svg + "</g>\n</svg>\n";
}

}  // namespace rushlight::graph
