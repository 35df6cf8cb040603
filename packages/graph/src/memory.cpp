// The memory plan of a run: the live range of each result, and its offset in one block.
#include <algorithm>
#include <functional>
#include <map>

#include "rushlight/graph/graph.h"
#include "sizes.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

constexpr int64_t kAlignment = 64;

// A block of memory that a node of a list allocates, with the first node that defines a value in it and the last node
// that uses a value in it.
struct LiveRange {
    ValueId memory;
    int64_t bytes;
    size_t first, last;
    int64_t offset = 0;
};

class Planner {
  public:
    Planner(const Graph& graph, const std::vector<int64_t>& sizes) : graph_(graph), sizes_(sizes) {}

    MemoryPlan run() {
        MemoryPlan plan;
        std::vector<LiveRange> ranges = live_ranges_of(graph_.nodes, graph_.outputs);
        // A node of control flow needs as much memory as its largest block.
        for (size_t n = 0; n < graph_.nodes.size(); ++n)
            for (const Block& block : graph_.nodes[n].blocks)
                if (const int64_t inside = peak_of(block.nodes, block.outputs))
                    ranges.push_back({kNone, inside, n, n});
        plan.peak = peak_of(ranges, graph_.nodes.size());
        plan.block = assign_offsets(ranges);
        plan.offsets.assign(graph_.values.size(), -1);
        std::map<ValueId, int64_t> offsets;
        for (const LiveRange& range : ranges) offsets[range.memory] = range.offset;
        for (ValueId id = 0; id < graph_.values.size(); ++id)
            if (const auto at = offsets.find(graph_.values[id].memory); at != offsets.end())
                plan.offsets[id] = at->second;
        return plan;
    }

  private:
    static constexpr ValueId kNone = ~ValueId{0};

    int64_t bytes_of(ValueId id) const {
        const auto& [type, memory, moving] = graph_.values[id];
        std::vector<int64_t> sizes = type.sizes;
        for (const Moving& m : moving) sizes[m.item] = sizes_[m.expression];
        int64_t bytes = static_cast<int64_t>(itemsize(type.dtype));
        for (int64_t size : sizes)
            RL_CHECK(size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes), throw_value,
                     "program: value %u is larger than any memory", id);
        return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }

    std::vector<LiveRange> live_ranges_of(const std::vector<Node>& nodes,
                                          const std::vector<ValueId>& outputs) const {
        std::vector<LiveRange> ranges;
        std::map<ValueId, size_t> of;  // for each block of memory, its index in the ranges
        for (size_t n = 0; n < nodes.size(); ++n) {
            const auto use = [&](ValueId id) {
                if (const auto at = of.find(graph_.values[id].memory); at != of.end())
                    ranges[at->second].last = n;
            };
            each_use_within(nodes[n], use);
            each_result(nodes[n], [&](ValueId id) {
                use(id);
                const ValueId memory = graph_.values[id].memory;
                if (memory != id) return;  // the result uses the memory of an argument
                of[memory] = ranges.size();
                ranges.push_back({memory, bytes_of(id), n, n});
            });
        }
        for (ValueId id : outputs)
            if (const auto at = of.find(graph_.values[id].memory); at != of.end())
                ranges[at->second].last = std::max<size_t>(nodes.size(), 1) - 1;
        return ranges;
    }

    int64_t peak_of(const std::vector<Node>& nodes, const std::vector<ValueId>& outputs) const {
        std::vector<LiveRange> ranges = live_ranges_of(nodes, outputs);
        for (size_t n = 0; n < nodes.size(); ++n)
            for (const Block& block : nodes[n].blocks)
                ranges.push_back({kNone, peak_of(block.nodes, block.outputs), n, n});
        return peak_of(ranges, nodes.size());
    }
    // The largest number of bytes that are live at the same time.
    static int64_t peak_of(const std::vector<LiveRange>& ranges, size_t count) {
        std::vector<int64_t> change(count + 1, 0);
        for (const LiveRange& range : ranges) {
            change[range.first] += range.bytes;
            change[range.last + 1] -= range.bytes;
        }
        int64_t now = 0, most = 0;
        for (int64_t step : change) most = std::max(most, now += step);
        return most;
    }

    // Assigns offsets to the ranges in descending order of size. Each gets the lowest offset that is free during its
    // live range. Returns the size of the whole block.
    static int64_t assign_offsets(std::vector<LiveRange>& ranges) {
        std::vector<LiveRange*> order;
        for (LiveRange& range : ranges) order.push_back(&range);
        std::ranges::stable_sort(order, std::greater(), [](const LiveRange* range) { return range->bytes; });
        std::vector<const LiveRange*> placed;  // in ascending order of offsets
        int64_t block = 0;
        for (LiveRange* range : order) {
            int64_t offset = 0;
            for (const LiveRange* other : placed) {
                if (other->last < range->first || range->last < other->first) continue;
                if (offset + range->bytes <= other->offset) break;
                offset = std::max(offset, other->offset + other->bytes);
            }
            range->offset = offset;
            block = std::max(block, offset + range->bytes);
            placed.insert(
                std::ranges::upper_bound(placed, offset, {}, [](const LiveRange* p) { return p->offset; }),
                range);
        }
        return block;
    }

    const Graph& graph_;
    const std::vector<int64_t>& sizes_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<int64_t>& symbols) {
    RL_CHECK(symbols.empty() || symbols.size() == graph.symbols.size(), throw_value,
             "plan_memory: got %zu sizes, needs %zu", symbols.size(), graph.symbols.size());
    std::vector<int64_t> values = symbols;
    if (values.empty())
        for (const Symbol& symbol : graph.symbols) values.push_back(symbol.example);
    const std::vector<int64_t> sizes = evaluate(graph, values);
    return Planner(graph, sizes).run();
}

}  // namespace rushlight::graph
