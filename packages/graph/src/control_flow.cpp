// Captures of control flow: Note [Control flow] in graph.h.
#include "control_flow.h"

#include "births.h"
#include "recorder.h"
#include "rushlight/batched.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/ne.h"
#include "rushlight/ops/ones.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/stack.h"

namespace rushlight::graph {

bool is_true(const char* op, const Tensor& t) {
    require_values(op, t);
    StagesOff untraced(kAllStages);
    Tensor truth = t.dtype() == DType::Bool ? t : ops::ne(t, Scalar(0));
    if (truth.device().type != DeviceType::CPU)
        truth = ops::copy_(make_tensor(truth.shape(), DType::Bool), truth);
    return *truth.data<bool>();
}

// --- blocks ---

std::vector<Tensor> Recorder::open_block(TensorList given) {
    std::vector<Tensor> inputs;
    {
        StagesOff untraced(kTracingStages);
        for (const Tensor& t : given) inputs.push_back(ops::clone(t));
    }
    open_.push_back({++last_block_, {}, {}, {}});
    capturing.block = last_block_;
    for (const Tensor& t : inputs) {
        const ValueId id = add_value(t);
        open_.back().block.inputs.push_back(id);
        open_.back().inputs.insert(id);
    }
    return inputs;
}

Block Recorder::close_block(TensorList outputs, bool copied) {
    const Operator& where = *find_operator("clone");  // the operator that errors name
    std::unordered_set<ValueId> memory;
    std::vector<ValueId> ids;
    for (const Tensor& t : outputs) {
        ValueId id = value_of(t, where);
        if (copied && (!is_own(id) || !memory.insert(graph_.values[id].memory).second)) {
            id = value_of(ops::clone(t), where);
            memory.insert(id);
        }
        ids.push_back(id);
    }
    Block block = std::move(open_.back().block);
    block.outputs = std::move(ids);
    drop_block();
    return block;
}

void Recorder::drop_block() {
    std::vector<std::pair<TensorImpl*, Known>>& replaced = open_.back().replaced;
    for (; !replaced.empty(); replaced.pop_back())
        known_.at(replaced.back().first) = std::move(replaced.back().second);
    open_.pop_back();
    capturing.block = open_.empty() ? 0 : open_.back().number;
}

Use Recorder::tensor_of(const Tensor& t) { return {value_of(t, *find_operator("clone"))}; }

Argument Recorder::tensors_of(TensorList tensors) {
    std::vector<std::optional<ValueId>> ids;
    for (const Tensor& t : tensors) ids.emplace_back(tensor_of(t).value);
    return ids;
}

std::vector<Tensor> Recorder::add_control_flow(ControlFlow control, std::vector<Argument> arguments,
                                               std::vector<Block> blocks, TensorList results) {
    Node node;
    node.control = control;
    node.arguments = std::move(arguments);
    node.blocks = std::move(blocks);
    for (const Block& block : node.blocks)
        for (const Node& inner : block.nodes) node.random = node.random || inner.random;
    locate(node);
    std::vector<Tensor> made;
    for (const Tensor& t : results) {
        StagesOff untraced(kTracingStages);
        if (t.requires_grad() && grad_mode()) {
            // Gradients through control flow are not supported, because the gradient of one run of the block is not the
            // gradient of the node. So the input is multiplied by a special tensor. When a gradient formula uses this
            // tensor, value_of raises an error.
            barriers_.push_back(ops::ones({}, t.dtype(), t.device()));
            made.push_back(ops::mul(t, barriers_.back()));
        } else {
            made.push_back(ops::clone(t));
        }
    }
    for (const Tensor& t : made) node.results.emplace_back(add_value(t));
    nodes().push_back(std::move(node));
    return made;
}

// --- cond, while_loop, scan ---

namespace {

Recorder& recorder_for(const char* op) {
    RL_CHECK(is_capturing(), throw_runtime, "capture_%s: no capture is under way on this thread", op);
    return *recorder;
}

std::string type_text(const Tensor& t) {
    return t.defined() ? to_text(TensorType{t.dtype(), t.device(), t.shape()}) : "nothing";
}

void check_types(const char* what, TensorList made, TensorList wanted, const char* whose) {
    RL_CHECK(made.size() == wanted.size(), throw_runtime, "%s returns %zu tensors, but %s %zu", what,
             made.size(), whose, wanted.size());
    for (size_t i = 0; i < made.size(); ++i)
        RL_CHECK(made[i].defined() && made[i].dtype() == wanted[i].dtype() &&
                     made[i].device().type == wanted[i].device().type && made[i].shape() == wanted[i].shape(),
                 throw_runtime,
                 "%s must return tensors of the same dtype, shape and device: tensor %zu is %s, but %s %s",
                 what, i, type_text(made[i]).c_str(), whose, type_text(wanted[i]).c_str());
}

void check_one_element(const char* what, const Tensor& t) {
    RL_CHECK(t.defined() && t.numel() == 1, throw_runtime, "%s must be a tensor of one element, got %s", what,
             type_text(t).c_str());
}

struct Recorded {
    Block block;
    std::vector<Tensor> outputs;
};

// `copied`: whether outputs are copied to separate memory.
Recorded record_block(Recorder& r, const BlockFunction& function, TensorList given, bool copied) {
    const std::vector<Tensor> inputs = r.open_block(given);
    try {
        std::vector<Tensor> outputs = function(inputs);
        for (const Tensor& t : outputs)
            RL_CHECK(t.defined(), throw_type,
                     "capture: a branch or loop must not return an undefined tensor");
        Block block = r.close_block(outputs, copied);
        return {std::move(block), std::move(outputs)};
    } catch (...) {
        r.drop_block();
        throw;
    }
}

}  // namespace

bool is_capturing() { return recorder && capturing.depth == 0; }

std::vector<Tensor> capture_cond(const Tensor& pred, const BlockFunction& true_fn,
                                 const BlockFunction& false_fn) {
    Recorder& r = recorder_for("cond");
    check_one_element("cond(pred)", pred);
    const Use use = r.tensor_of(pred);
    Recorded yes = record_block(r, true_fn, {}, true), no = record_block(r, false_fn, {}, true);
    check_types("cond: true_fn", yes.outputs, no.outputs, "false_fn returns");
    bool chosen;
    {
        StagesOff untraced(kAllStages);
        chosen = is_true("cond", pred);
    }
    return r.add_control_flow(ControlFlow::Cond, {use}, {std::move(yes.block), std::move(no.block)},
                              chosen ? yes.outputs : no.outputs);
}

std::vector<Tensor> capture_while_loop(const BlockFunction& cond_fn, const BlockFunction& body_fn,
                                       TensorList carried) {
    Recorder& r = recorder_for("while_loop");
    Argument given = r.tensors_of(carried);
    Recorded condition = record_block(r, cond_fn, carried, false);
    RL_CHECK(condition.outputs.size() == 1, throw_runtime,
             "while_loop: cond_fn must return one tensor, got %zu", condition.outputs.size());
    check_one_element("while_loop: the result of cond_fn", condition.outputs[0]);
    Recorded body = record_block(r, body_fn, carried, true);
    check_types("while_loop: body_fn", body.outputs, carried, "carried_inputs has");
    return r.add_control_flow(ControlFlow::WhileLoop, {std::move(given)},
                              {std::move(condition.block), std::move(body.block)}, body.outputs);
}

std::vector<Tensor> capture_scan(const BlockFunction& combine_fn, TensorList init, TensorList xs) {
    Recorder& r = recorder_for("scan");
    RL_CHECK(!xs.empty(), throw_value, "scan(xs): must contain at least one tensor, got none");
    std::vector<Tensor> given(init.begin(), init.end());
    for (const Tensor& x : xs) {
        RL_CHECK(x.dim() > 0 && x.sizes()[0] == xs[0].sizes()[0] && x.sizes()[0] > 0, throw_value,
                 "scan(xs): the tensors must have the same length, of at least 1, got %s",
                 type_text(x).c_str());
        StagesOff untraced(kTracingStages);
        given.push_back(ops::select(x, 0, 0));
    }
    std::vector<Argument> arguments{r.tensors_of(init), r.tensors_of(xs)};
    Recorded body = record_block(r, combine_fn, given, true);
    RL_CHECK(body.outputs.size() >= init.size(), throw_runtime,
             "scan: combine_fn returns %zu tensors, needs %zu for the carry", body.outputs.size(),
             init.size());
    check_types("scan: combine_fn", {body.outputs.data(), init.size()}, init, "init has");
    std::vector<Tensor> results(body.outputs.begin(),
                                body.outputs.begin() + static_cast<ptrdiff_t>(init.size()));
    for (size_t i = init.size(); i < body.outputs.size(); ++i) {
        StagesOff untraced(kTracingStages);
        const std::vector<Tensor> rows(static_cast<size_t>(xs[0].sizes()[0]), body.outputs[i]);
        results.push_back(ops::stack(rows, 0));
    }
    return r.add_control_flow(ControlFlow::Scan, std::move(arguments), {std::move(body.block)}, results);
}

}  // namespace rushlight::graph
