#include "batch_norm.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "rushlight/hooks.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/rsqrt.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/to.h"
#include "walk.h"

namespace rushlight::graph {
namespace {

// Positions of arguments.
enum Convolution : size_t { kInput, kWeight, kBias };
enum BatchNorm : size_t { kNormed, kScale, kShift, kMean, kVariance, kTraining, kMomentum, kEpsilon };

bool is_convolution(std::string_view name) {
    for (std::string_view known : {"conv1d", "conv2d", "conv3d"})
        if (name == known || (name.starts_with(known) && name.substr(known.size()) == ".padding"))
            return true;
    return false;
}

class Folding {
  public:
    Folding(Graph& graph, std::vector<Tensor>& constants) : graph_(graph), constants_(constants) {
        const SharedMemory memory(graph);
        const std::set<ValueId> written = written_memory(graph, memory);
        for (size_t i = 0; i < constants.size(); ++i) {
            const Constant& constant = graph.constants[i];
            names_.insert(constant.name);
            if (!written.contains(memory.of(constant.value))) constant_indices_[constant.value] = i;
        }
        for (const Node& node : graph.nodes) count_uses(node);
        for (ValueId id : graph.outputs) ++uses_[id];
    }

    void run() {
        std::map<ValueId, size_t> convolutions;  // result of each convolution, and its node
        std::set<size_t> folded;                 // nodes of batch norms that were folded
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            Node& node = graph_.nodes[n];
            if (node.control != ControlFlow::None) continue;
            const std::string& name = graph_.operators[node.op].name;
            if (is_convolution(name)) {
                convolutions[std::get<ValueId>(node.results[0])] = n;
            } else if (name == "batch_norm") {
                const auto at = convolutions.find(std::get<Use>(node.arguments[kNormed]).value);
                if (at == convolutions.end() || uses_[at->first] != 1) continue;
                if (fold(graph_.nodes[at->second], node)) folded.insert(n);
            }
        }
        std::vector<Node> kept;
        for (size_t n = 0; n < graph_.nodes.size(); ++n)
            if (!folded.contains(n)) kept.push_back(std::move(graph_.nodes[n]));
        graph_.nodes = std::move(kept);
    }

  private:
    void count_uses(const Node& node) {
        each_use(node, [&](ValueId id) { ++uses_[id]; });
        for (const Block& block : node.blocks) {
            for (const Node& inner : block.nodes) count_uses(inner);
            for (ValueId id : block.outputs) ++uses_[id];
        }
    }

    // Returns the constant that is passed as an argument; an undefined tensor for None; nothing if the argument is
    // not a constant.
    std::optional<Tensor> constant(const Node& node, size_t position) const {
        const Argument& argument = node.arguments[position];
        if (std::holds_alternative<std::monostate>(argument)) return Tensor();
        const auto* use = std::get_if<Use>(&argument);
        const auto at = use ? constant_indices_.find(use->value) : constant_indices_.end();
        if (at == constant_indices_.end()) return std::nullopt;
        return constants_[at->second];
    }

    bool fold(Node& convolution, const Node& norm) {
        const bool* training = std::get_if<bool>(&norm.arguments[kTraining]);
        const double* epsilon = std::get_if<double>(&norm.arguments[kEpsilon]);
        if (!training || *training || !epsilon) return false;
        const std::optional<Tensor> weight = constant(convolution, kWeight),
                                    bias = constant(convolution, kBias), scale = constant(norm, kScale),
                                    shift = constant(norm, kShift), mean = constant(norm, kMean),
                                    variance = constant(norm, kVariance);
        if (!weight || !mean || !mean->defined() || !variance || !variance->defined()) return false;
        for (const auto* each : {&bias, &scale, &shift, &mean, &variance})
            if (!*each || ((*each)->defined() && (*each)->dtype() != weight->dtype())) return false;
        // Batch norm scales dimension 1. This is the dimension of the channels only if the convolution's result has a
        // batch dimension.
        const ValueId normed = std::get<Use>(norm.arguments[kNormed]).value;
        if (graph_.values[normed].type.sizes.size() != weight->sizes().size()) return false;
        if (convolution.gradients != norm.gradients) return false;
        if (weight->dtype() != DType::Float32 && weight->dtype() != DType::Float64) return false;

        StagesOff untraced(kAllStages);
        GradMode off(false);
        const auto wide = [](const Tensor& t) { return ops::to(t, DType::Float64); };
        Tensor factor = ops::rsqrt(ops::add(wide(*variance), *epsilon));
        if (scale->defined()) factor = ops::mul(factor, wide(*scale));
        Tensor summand = ops::mul(
            factor, bias->defined() ? ops::sub(wide(*bias), wide(*mean)) : ops::mul(wide(*mean), -1.0));
        if (shift->defined()) summand = ops::add(summand, wide(*shift));
        std::vector<int64_t> per_filter(weight->sizes().size(), 1);
        per_filter[0] = -1;
        const Tensor product = ops::mul(wide(*weight), ops::reshape(factor, per_filter));

        const std::string name =
            graph_.constants[constant_indices_.at(std::get<Use>(convolution.arguments[kWeight]).value)].name;
        convolution.arguments[kWeight] = define(name + ".folded", ops::to(product, weight->dtype()));
        convolution.arguments[kBias] = define(name + ".folded_bias", ops::to(summand, weight->dtype()));
        convolution.results = norm.results;
        return true;
    }

    Use define(const std::string& wanted, const Tensor& t) {
        std::string name = wanted;
        for (int number = 1; !names_.insert(name).second; ++number)
            name = wanted + "_" + std::to_string(number);
        const auto id = static_cast<ValueId>(graph_.values.size());
        graph_.values.push_back({TensorType{t.dtype(), t.device(), t.shape()}, id, {}});
        std::vector<int64_t> strides;
        if (!t.is_contiguous()) strides.assign(t.strides().begin(), t.strides().end());
        graph_.constants.push_back({std::move(name), id, ConstantKind::Constant, false, std::move(strides)});
        constants_.push_back(t);
        return {id};
    }

    Graph& graph_;
    std::vector<Tensor>& constants_;
    std::map<ValueId, size_t> constant_indices_;  // indices of the constants that no node writes
    std::map<ValueId, size_t> uses_;
    std::set<std::string> names_;
};

}  // namespace

void fold_batch_norms(Graph& graph, std::vector<Tensor>& constants) { Folding(graph, constants).run(); }

}  // namespace rushlight::graph
