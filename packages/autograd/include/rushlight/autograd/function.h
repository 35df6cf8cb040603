// Custom operators with a derivative, written in C++.
#pragma once

#include <concepts>
#include <string>
#include <unordered_map>

#include "rushlight/autograd/saved.h"
#include "rushlight/value.h"

namespace rushlight::autograd {

/// The context that forward() fills for backward().
class RL_API Context {
  public:
    /// Saves arguments or results. The backward pass raises an error if a saved tensor was written in place in the
    /// meantime.
    void save(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
    /// Returns the saved tensors in order. Must be called in backward().
    std::vector<Tensor> saved() const;
    /// Values other than tensors, by name.
    std::unordered_map<std::string, Value> values;

    /// Declares that forward() has written an argument in place; the argument must be among the results.
    void mark_dirty(const Tensor& argument) { dirty_.push_back(argument); }
    /// Declares that a result has no gradient.
    void mark_non_differentiable(const Tensor& result) { constant_.push_back(result); }
    /// Whether the gradient of the i-th tensor argument is needed. May be called in forward() and backward().
    bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }

  private:
    friend class FunctionNodeBase;
    std::vector<Tensor> to_save_, dirty_, constant_;
    std::vector<SavedTensor> saved_;
    std::vector<bool> needs_;
    Node* node_ = nullptr;
};

/// The node of a Function. Function::apply creates it.
class RL_API FunctionNodeBase : public Node {
  public:
    RL_NODE_MEMORY
    using Backward = std::vector<Tensor> (*)(Context&, TensorList);
    /// Runs `forward` without recording its operators, then records the call if an argument requires grad.
    static std::vector<Tensor> run(const char* name, TensorList arguments,
                                   const std::function<std::vector<Tensor>(Context&)>& forward,
                                   Backward backward);

    void apply(std::span<Tensor> grads, std::span<Tensor> out) override;
    void release_saved() override;
    void saved(const SavedVisitor& visit) const override;

  private:
    FunctionNodeBase(const char* name, uint32_t results, uint32_t arguments, Backward backward)
        : Node(name, results, arguments), backward_(backward) {}
    void record(std::vector<Tensor>& results, TensorList arguments);

    Context context_;
    Backward backward_;
    std::vector<SavedShape> results_, arguments_;
};

/// The base of operators with a derivative. A class derives from Function<itself> and has two static functions:
///
///     static Tensor forward(Context& ctx, const Tensor& x, double power);        // or std::vector<Tensor>
///     static std::vector<Tensor> backward(Context& ctx, TensorList gradients);   // one for each Tensor argument
///
/// and is called as `Power::apply(x, 3.0)`. forward() runs without recording gradients. backward() receives zeros in
/// place of absent gradients. A gradient that backward() returns may be undefined; otherwise it must have the
/// argument's shape, or a RuntimeError is raised. backward() can itself be differentiated if it only calls operators.
/// `static constexpr const char* name` names the operator in graphs.
template <class Derived>
class Function {
  public:
    template <class... Arguments>
    static auto apply(const Arguments&... arguments) {
        using Result = decltype(Derived::forward(std::declval<Context&>(), arguments...));
        static_assert(std::same_as<Result, Tensor> || std::same_as<Result, std::vector<Tensor>>,
                      "forward() must return a Tensor or a std::vector<Tensor>");
        std::vector<Tensor> tensors;
        (add(tensors, arguments), ...);
        std::vector<Tensor> results = FunctionNodeBase::run(
            name_of(), tensors,
            [&](Context& ctx) {
                if constexpr (std::same_as<Result, Tensor>)
                    return std::vector<Tensor>{Derived::forward(ctx, arguments...)};
                else return Derived::forward(ctx, arguments...);
            },
            [](Context& ctx, TensorList gradients) { return Derived::backward(ctx, gradients); });
        if constexpr (std::same_as<Result, Tensor>) return std::move(results[0]);
        else return results;
    }

  private:
    template <class T>
    static void add(std::vector<Tensor>& tensors, const T& argument) {
        if constexpr (std::same_as<T, Tensor>) tensors.push_back(argument);
    }
    static const char* name_of() {
        if constexpr (requires { Derived::name; }) return Derived::name;
        else return "CppFunction";
    }
};

}  // namespace rushlight::autograd
