// The record of a Capture of its thread's calls: Note [Capture].
#pragma once

#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "rushlight/graph/capture.h"
#include "rushlight/random.h"
#include "rushlight/value.h"

namespace rushlight::graph {

struct Recorder {
    inline static std::atomic<uint64_t> last_number{0};

    ~Recorder();
    Recorder(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded,
             Level level);

    void call(const Operator& op, StageMask rest, Stack& stack);
    void values_read(const char* op, const Tensor& t) const;
    void begin() { random_ = random_before_ = default_generator().get_state(); }
    void check_random() const;
    void note_end() { seeded_ = default_generator().get_state() != random_; }
    void undo();
    void carry_gradients();
    const std::vector<GradChange>& changed_gradients() const { return changed_gradients_; }

    // --- control flow: control_flow.cpp ---

    /// Begins a block. Its inputs represent `given`; tensors with their values are returned.
    std::vector<Tensor> open_block(TensorList given);
    /// Ends the block. Outputs without separate memory are copied, except those of a condition.
    Block close_block(TensorList outputs, bool copied);
    /// Discards the innermost block after an exception.
    void drop_block();
    /// Adds a node whose results have these types and values.
    std::vector<Tensor> add_control_flow(ControlFlow control, std::vector<Argument> arguments,
                                         std::vector<Block> blocks, TensorList results);
    Argument tensors_of(TensorList tensors);
    Use tensor_of(const Tensor& t);

    Program finish(TensorList outputs, std::map<std::string, std::string> metadata);

    const uint64_t number = ++last_number;
    bool started = false, stopped = false;
    bool watches = false;  // memory: also of results, so until the program is made
    const Level level;
    mutable bool needs_below = false;  // for what was refused
    std::vector<std::string> modules;

  private:
    // A tensor of the program.
    struct Known {
        ValueId value;
        Tensor tensor;     // so that its address is not another's
        Storage* storage;  // at the time
    };
    // Inputs and state, which a run of the region may change, and their previous values.
    struct Outside {
        Named named;
        Tensor before;  // a copy, once there is a reason for one
        uint32_t version;
        Ref<TensorImpl> grad;
        Ref<Storage> storage;
        Geometry geometry;
        std::optional<uint32_t> constant;  // in graph.constants
    };

    void check_stages(const Operator& op, const Stack& stack) const;
    bool is_expanded(const Operator& op, const Stack& stack) const;
    static bool has_moved(const Outside& outside);
    void check_offset(const Node& node, const Operator& op) const;
    void keep_before_write(Storage* storage);
    void make_own(const Tensor& t, const Operator& op);

    ValueId value_of(const Tensor& t, const Operator& op);
    std::optional<ValueId> same_place(const Tensor& t) const;
    void check_scope(ValueId id, const Operator& op) const;
    void check_write(const Tensor& t, const Operator& op);
    ValueId add_value(const Tensor& t);
    ValueId add_constant(const Tensor& t, std::string name, ConstantKind kind);
    ValueId add_alias(const Tensor& t, ValueId memory, const Operator& op);
    Argument argument_of(const Value& value, const Operator& op);
    Result result_of(const Value& value);
    uint32_t operator_index(const Operator& op);
    uint32_t text_index(const std::string& text);
    void locate(Node& node);

    // A block that is being recorded, and the nodes of the enclosing list.
    struct Open {
        uint32_t number;
        Block block;
        std::unordered_set<ValueId> inputs;
        std::vector<std::pair<TensorImpl*, Known>>
            replaced;  // of known_, which the end of the block restores
    };
    bool is_open(uint32_t block) const;
    bool is_own(ValueId id) const;
    std::vector<Node>& nodes() { return open_.empty() ? graph_.nodes : open_.back().block.nodes; }

    Graph graph_;
    std::vector<Open> open_;
    uint32_t last_block_ = 0;
    std::vector<uint32_t> block_of_;  // where each value is defined: 0 is the graph
    std::vector<Tensor> barriers_;         // that gradients through control flow meet
    std::vector<Tensor> constants_;
    std::vector<Outside> outside_;
    size_t num_inputs_;
    std::set<std::string> expanded_;
    std::unordered_map<TensorImpl*, size_t> outside_of_;
    std::unordered_map<Storage*, std::vector<size_t>> outside_over_;
    std::unordered_map<TensorImpl*, Known> known_;
    std::unordered_map<Storage*, ValueId> memory_;
    std::unordered_map<Storage*, std::vector<std::pair<Geometry, ValueId>>> places_;  // below gradients
    std::vector<std::pair<Tensor, Tensor>>
        strangers_;  // written, of neither inputs nor state, and as they were
    std::vector<GradChange> changed_gradients_;
    std::vector<Tensor> from_outside_;  // inputs and constants
    std::vector<Tensor> held_;  // that were recorded before: in-place results replace them
    std::unordered_set<ValueId>
        fresh_;  // constants that Python made inside the region: each run begins with theirs
    std::unordered_map<const Operator*, uint32_t> operators_;
    std::unordered_map<std::string, uint32_t> texts_{{"", 0}};
    bool seeded_ = false;  // after the last call
    std::vector<uint8_t> random_before_,
        random_;  // the default generator's state, and that after the last call
};

/// The record of the capture on this thread, or null.
extern thread_local Recorder* recorder RL_TLS_MODEL;

/// " at model.py:12", or "" if the line is unknown.
std::string here();

}  // namespace rushlight::graph
