#include "growth.h"

#include <unordered_map>

// Note [Graphs that grow]
// The result of `total += loss` without item() or detach() is a graph that holds the graph of every iteration's loss.
// backward() of each loss has freed the tensors that its graph saved, but its nodes remain, and the sum can never be
// differentiated. Two signs reveal such a graph, and both checks are cheap. If the sum is made after backward() has
// run, an operator records an edge to a node that was used up: this is one bit, checked when the edge is made. If the
// sum was made before backward() ran, the root of that pass has an owner other than the output tensor: this is checked
// once for each pass. As long as such nodes exist, they are counted by the line of the program that refers to them.
// When a line has kMany of them, a warning is issued. A recurrent network, which runs the same line repeatedly, shows
// neither sign: its nodes are not used up while it is being recorded, and are freed soon after. See decision 0022.

namespace rushlight::autograd {
namespace {

constexpr size_t kMany = 64;

struct Key {
    Site site;
    bool extended;
    bool operator==(const Key&) const = default;
};
struct Hash {
    size_t operator()(const Key& k) const { return k.site * 2 + k.extended; }
};
struct Count {
    size_t alive = 0;
    bool reported = false;
};

struct Table {
    std::mutex mutex;
    std::unordered_map<const Node*, Key> counted;
    std::unordered_map<Key, Count, Hash> counts;
    Key reached{};
};
Table& table() {
    static Table* t = new Table;  // never destroyed: nodes may outlive static objects
    return *t;
}
std::atomic<bool> report_waits{false};

}  // namespace

std::mutex& Growth::mutex() { return table().mutex; }

void Growth::extended(Node* node) { watch(node, current_site(), true); }
void Growth::still_held(Node* root) { watch(root, root->site(), false); }

void Growth::watch(Node* node, Site site, bool extended) {
    if (!site || node->counted_.exchange(true, std::memory_order_relaxed)) return;
    Table& t = table();
    std::lock_guard lock(t.mutex);
    Key key{site, extended};
    t.counted.emplace(node, key);
    Count& count = t.counts[key];
    if (++count.alive < kMany || count.reported || report_waits.load(std::memory_order_relaxed)) return;
    count.reported = true;
    t.reached = key;
    report_waits.store(true, std::memory_order_release);
}

void Growth::forget(Node* node) noexcept {
    Table& t = table();
    std::lock_guard lock(t.mutex);
    auto found = t.counted.find(node);
    if (found == t.counted.end()) return;
    --t.counts[found->second].alive;
    t.counted.erase(found);
}

std::optional<GrowthReport> take_growth_report() {
    if (!report_waits.load(std::memory_order_relaxed)) [[likely]]
        return std::nullopt;
    Table& t = table();
    std::lock_guard lock(t.mutex);
    if (!report_waits.exchange(false)) return std::nullopt;
    GrowthReport report{t.reached.site, t.reached.extended, t.counts[t.reached].alive, nullptr};
    for (auto& [node, key] : t.counted)
        // Another thread may have released the last reference and may be waiting for the lock in forget().
        if (key == t.reached && node->try_retain()) {
            report.sample = Ref<Node>::adopt(const_cast<Node*>(node));
            break;
        }
    return report;
}

}  // namespace rushlight::autograd
