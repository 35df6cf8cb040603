// Programs for C: rushlight/graph/c.h.
#include "rushlight/graph/c.h"

#include <string>
#include <vector>

#include "rushlight/c_support.h"
#include "rushlight/graph/program.h"

struct rl_program {
    rushlight::graph::Program program;
};

namespace rushlight::graph {
namespace {

using c::empty, c::empty_sized, c::guarded, c::require;

// The inputs of a call. The destructor releases the inputs that were not converted to tensors.
class Inputs {
  public:
    Inputs(const rl_array* arrays, size_t count) : arrays_(arrays), count_(arrays ? count : 0) {}
    ~Inputs() {
        for (; taken_ < count_; ++taken_)
            if (arrays_[taken_].struct_size >= sizeof(rl_array) && arrays_[taken_].release)
                arrays_[taken_].release(arrays_[taken_].context);
    }
    std::vector<Tensor> take() {
        std::vector<Tensor> tensors;
        tensors.reserve(count_);
        while (taken_ < count_) {
            const rl_array& array = arrays_[taken_];
            const std::string where = "rl_program_run(inputs[" + std::to_string(taken_) + "])";
            ++taken_;
            tensors.push_back(c::tensor_over(array, where.c_str()));
        }
        return tensors;
    }

  private:
    const rl_array* arrays_;
    size_t count_, taken_ = 0;
};

}  // namespace
}  // namespace rushlight::graph

using namespace rushlight;
using namespace rushlight::graph;

extern "C" {

RL_API rl_status rl_program_load(const char* path, rl_program** program) {
    empty(program);
    return guarded([&] {
        require(program, "rl_program_load", "program");
        require(path, "rl_program_load", "path");
        *program = new rl_program{Program::load(path)};
    });
}

RL_API void rl_program_free(rl_program* program) { delete program; }

RL_API rl_status rl_program_counts(const rl_program* program, size_t* inputs, size_t* outputs) {
    empty(inputs, outputs);
    return guarded([&] {
        require(program, "rl_program_counts", "program");
        if (inputs) *inputs = program->program.graph().inputs.size();
        if (outputs) *outputs = program->program.graph().outputs.size();
    });
}

RL_API rl_status rl_program_input_name(const rl_program* program, size_t input, const char** name) {
    empty(name);
    return guarded([&] {
        require(program, "rl_program_input_name", "program");
        require(name, "rl_program_input_name", "name");
        const std::vector<Input>& inputs = program->program.graph().inputs;
        RL_CHECK(input < inputs.size(), throw_index,
                 "rl_program_input_name(input): %zu is out of range for %zu inputs", input, inputs.size());
        *name = inputs[input].name.c_str();
    });
}

RL_API rl_status rl_program_run(const rl_program* program, const rl_array* inputs, size_t num_inputs,
                                rl_array* outputs, size_t num_outputs) {
    Inputs given(inputs, num_inputs);
    for (size_t i = 0; outputs && i < num_outputs; ++i) empty_sized(&outputs[i]);
    return guarded([&] {
        require(program, "rl_program_run", "program");
        if (num_inputs) require(inputs, "rl_program_run", "inputs");
        if (num_outputs) require(outputs, "rl_program_run", "outputs");
        const size_t wanted = program->program.graph().outputs.size();
        RL_CHECK(num_outputs == wanted, throw_value,
                 "rl_program_run(num_outputs): got %zu, but the program has %zu results", num_outputs,
                 wanted);
        const auto where = [](size_t i) { return "rl_program_run(outputs[" + std::to_string(i) + "])"; };
        for (size_t i = 0; i < num_outputs; ++i) c::check_size(outputs[i], where(i).c_str());
        const std::vector<Tensor> results = program->program.run(given.take());
        try {
            for (size_t i = 0; i < num_outputs; ++i)
                c::describe_memory(results[i], outputs[i], where(i).c_str());
        } catch (...) {
            for (size_t i = 0; i < num_outputs; ++i) rl_array_free(&outputs[i]);
            throw;
        }
    });
}

RL_API rl_status rl_program_call(const rl_program* program, rl_tensor* const* inputs, size_t num_inputs,
                                 rl_tensor** outputs, size_t num_outputs) {
    for (size_t i = 0; outputs && i < num_outputs; ++i) outputs[i] = nullptr;
    return guarded([&] {
        require(program, "rl_program_call", "program");
        if (num_inputs) require(inputs, "rl_program_call", "inputs");
        if (num_outputs) require(outputs, "rl_program_call", "outputs");
        const size_t wanted = program->program.graph().outputs.size();
        RL_CHECK(num_outputs == wanted, throw_value,
                 "rl_program_call(num_outputs): got %zu, but the program has %zu results", num_outputs,
                 wanted);
        std::vector<Tensor> given;
        for (size_t i = 0; i < num_inputs; ++i) {
            const std::string argument = "inputs[" + std::to_string(i) + "]";
            given.push_back(c::tensor_of(inputs[i], "rl_program_call", argument.c_str()));
        }
        std::vector<Tensor> results = program->program.run(given);
        for (size_t i = 0; i < num_outputs; ++i) outputs[i] = c::handle_of(std::move(results[i]));
    });
}

RL_API rl_status rl_program_tensor(const rl_program* program, const char* name, rl_tensor** result) {
    empty(result);
    return guarded([&] {
        require(result, "rl_program_tensor", "result");
        require(program, "rl_program_tensor", "program");
        require(name, "rl_program_tensor", "name");
        const std::vector<Constant>& constants = program->program.graph().constants;
        for (size_t i = 0; i < constants.size(); ++i)
            if (constants[i].name == name) {
                *result = c::handle_of(program->program.constants()[i]);
                return;
            }
        throw_value("rl_program_tensor(name): the program has no tensor '%s'", name);
    });
}

RL_API rl_status rl_program_save(const rl_program* program, const char* path) {
    return guarded([&] {
        require(program, "rl_program_save", "program");
        require(path, "rl_program_save", "path");
        program->program.save(path);
    });
}

}  // extern "C"
