// The state of a Capture, which records the calls of its thread: Note [Capture].
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "rushlight/graph/capture.h"
#include "rushlight/random.h"
#include "rushlight/random_uses.h"
#include "rushlight/schema.h"
#include "rushlight/value.h"

namespace rushlight::graph {

struct Recorder {
    inline static std::atomic<uint64_t> last_number{0};

    ~Recorder();
    Recorder(std::vector<Named> inputs, std::vector<Named> state, std::set<std::string> expanded,
             Level level);

    void call(const Operator& op, StageMask rest, Stack& stack);
    void values_read(const char* op, const Tensor& t) const;
    void begin() {
        random_ = random_before_ = default_generator().get_state();
        random_uses_ = random_uses_before_ = uses_of_default_generator();
        gradients_ = grad_mode();
    }
    void check_random();
    void note_end() { seeded_ = has_random_changed(); }
    bool has_random_changed() const;
    void undo();
    void carry_gradients();
    const std::vector<GradChange>& changed_gradients() const { return changed_gradients_; }

    // --- control flow: control_flow.cpp ---

    /// Begins a block whose inputs represent `given`. Returns tensors with the values of these inputs.
    std::vector<Tensor> open_block(TensorList given);
    /// Ends the block. If `copied` is true, outputs that share memory are copied. The output of a condition need not be
    /// copied.
    Block close_block(TensorList outputs, bool copied);
    /// Discards the innermost block after an exception.
    void drop_block();
    /// Adds a node of control flow whose results have the types and values of `results`.
    std::vector<Tensor> add_control_flow(ControlFlow control, std::vector<Argument> arguments,
                                         std::vector<Block> blocks, TensorList results);
    Argument tensors_of(TensorList tensors);
    Use tensor_of(const Tensor& t);

    Program finish(TensorList outputs, std::map<std::string, std::string> metadata);

    const uint64_t number = ++last_number;
    bool started = false, stopped = false;
    std::shared_ptr<void> provider;  // keeps the stage attached while the capture is under way
    bool watches = false;  // whether it uses the table of births, until the program is finished
    uint64_t births_before = 0;  // number of births before the capture
    const Level level;
    mutable bool needs_below = false;  // whether the operation that raised an error needs Level::Below
    std::vector<std::string> modules;

  private:
    // A tensor of the program.
    struct Known {
        ValueId value;
        Tensor tensor;     // keeps the tensor alive, so that its address is not reused
        Storage* storage;  // its storage when it was recorded
    };
    // An input or state tensor, which the region may change, and its previous value.
    struct Outside {
        Named named;
        Tensor before;  // a copy of the value, made before the first write
        uint32_t version, grad_version;
        Ref<TensorImpl> grad;
        Ref<Storage> storage;
        Geometry geometry;
        std::optional<uint32_t> constant;  // index in graph.constants
        bool written;                      // a recorded call has written its memory
    };

    std::string writer_of(ValueId memory) const;
    void check_stages(const Operator& op, const Stack& stack) const;
    bool is_expanded(const Operator& op, const Stack& stack) const;
    static bool has_moved(const Outside& outside);
    void check_offset(const Node& node, const Operator& op) const;
    void keep_before_write(Storage* storage);
    void separate(const Operator& op, const std::vector<std::pair<Tensor, size_t>>& given,
                  const SchemaText& schema, Stack& stack);
    void make_own(const Tensor& t, const Operator& op);

    ValueId value_of(const Tensor& t, const Operator& op);
    std::optional<ValueId> find_alias(const Tensor& t) const;
    void check_scope(ValueId id, const Operator& op) const;
    void check_write(const Tensor& t, const Operator& op);
    void check_version(const Tensor& t, const Operator& op) const;
    void note_version(const Tensor& t);
    ValueId add_value(const Tensor& t);
    ValueId add_constant(const Tensor& t, std::string name, ConstantKind kind);
    ValueId add_alias(const Tensor& t, ValueId memory, const Operator& op);
    Argument argument_of(const Value& value, const Operator& op);
    Result result_of(const Value& value);
    uint32_t operator_index(const Operator& op);
    uint32_t text_index(const std::string& text);
    void locate(Node& node);

    // A block that is being recorded.
    struct Open {
        uint32_t number;
        Block block;
        std::unordered_set<ValueId> inputs;
        // Entries of known_ that the block has replaced. The end of the block restores them.
        std::vector<std::pair<TensorImpl*, Known>> replaced;
    };
    bool is_open(uint32_t block) const;
    bool is_own(ValueId id) const;
    std::vector<Node>& nodes() { return open_.empty() ? graph_.nodes : open_.back().block.nodes; }

    Graph graph_;
    std::vector<Open> open_;
    uint32_t last_block_ = 0;
    std::vector<uint32_t> block_of_;  // the block that defines each value; 0 is the graph
    std::unordered_map<Storage*, uint32_t> versions_;  // after the last recorded call
    std::vector<Tensor> barriers_;         // gradient formulas that use these raise an error
    std::vector<Tensor> constants_;
    std::vector<Outside> outside_;
    size_t num_inputs_;
    std::set<std::string> expanded_;
    std::unordered_map<TensorImpl*, size_t> outside_of_;
    std::unordered_map<Storage*, std::vector<size_t>> outside_over_;
    std::unordered_map<TensorImpl*, Known> known_;
    std::unordered_map<Storage*, ValueId> memory_;
    std::unordered_map<Storage*, std::vector<std::pair<Geometry, ValueId>>>
        values_by_storage_;  // used below gradients
    // Tensors that were written and are neither inputs nor state, with copies of their previous values.
    std::vector<std::pair<Tensor, Tensor>> strangers_;
    std::vector<GradChange> changed_gradients_, changed_input_gradients_;
    std::vector<Tensor> from_outside_;  // inputs and constants
    std::vector<Tensor> held_;  // tensors whose entry the result of an in-place operator has replaced
    // Constants that were made from Python data inside the region. Each run begins with their original values.
    std::unordered_set<ValueId> fresh_;
    std::unordered_map<const Operator*, uint32_t> operators_;
    std::unordered_map<std::string, uint32_t> texts_{{"", 0}};
    bool gradients_ = true;  // the gradient mode at the start
    bool seeded_ = false;  // whether the generator changed after the last recorded call
    // The state of the default generator before the region, and after the last recorded call that drew numbers. Other
    // threads may draw, too, so the uses by this thread are counted.
    std::vector<uint8_t> random_before_, random_;
    uint64_t random_uses_before_ = 0, random_uses_ = 0;
};

/// The record of the capture on this thread, or null.
extern thread_local Recorder* recorder RL_TLS_MODEL;

/// Returns the current line of the program as " at model.py:12", or "" if it is unknown.
std::string here();

}  // namespace rushlight::graph
