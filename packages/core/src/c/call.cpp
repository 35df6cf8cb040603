// Calls of operators by name, with boxed arguments.
#include <utility>

#include "c/operators.h"
#include "c/values.h"
#include "runtime/per_thread.h"

using namespace rushlight;
using namespace rushlight::c;

namespace {

// The stack of a call. Its memory is reused by the next call of the thread. A nested call gets a separate stack.
class CallStack {
  public:
    CallStack() : stack_(std::move(kept())) {}
    ~CallStack() {
        stack_.clear();
        if (stack_.capacity() > kept().capacity()) kept().swap(stack_);
    }
    Stack& operator*() { return stack_; }

  private:
    static Stack& kept() { return PerThread<Stack, CallStack>::get(); }
    Stack stack_;
};

void check_count(const Operator& op, const char* what, size_t got, size_t least, size_t most) {
    if (got >= least && got <= most) return;
    const std::string wanted =
        least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
    throw_type("%s: needs %s %s, got %zu\nhint: the schema is %s", op.name, wanted.c_str(), what, got,
               op.schema);
}

}  // namespace

extern "C" RL_API rl_status rl_call(const char* name, const rl_value* arguments, size_t num_arguments,
                                    rl_value* results, size_t num_results) {
    for (size_t i = 0; results && i < num_results; ++i) results[i] = rl_value{};
    return guarded([&] {
        if (num_results) require(results, "rl_call", "results");
        require(name, "rl_call", "name");
        const auto [op, signature] = operator_named(name);
        check_count(*op, "arguments", num_arguments, signature->required, signature->arguments.size());
        check_count(*op, "results", num_results, signature->results, signature->results);
        if (num_arguments) require(arguments, "rl_call", "arguments");
        CallStack call;
        Stack& stack = *call;
        stack.reserve(signature->arguments.size());
        for (size_t i = 0; i < num_arguments; ++i)
            stack.push_back(value_of(arguments[i], *op, signature->arguments[i]));
        for (size_t i = num_arguments; i < signature->arguments.size(); ++i)
            stack.push_back(signature->defaults[i - signature->required]);
        call_boxed(*op, stack);
        try {
            for (size_t i = 0; i < num_results; ++i) hand_out(std::move(stack[i]), results[i]);
        } catch (...) {
            for (size_t i = 0; i < num_results; ++i) rl_value_free(&results[i]);
            throw;
        }
    });
}
