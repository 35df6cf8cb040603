// Tensors, gradients and random numbers for C.
#include <algorithm>

#include "c/values.h"
#include "rushlight/dispatch.h"
#include "rushlight/gradients.h"
#include "rushlight/random.h"

using namespace rushlight;
using namespace rushlight::c;

extern "C" {

RL_API rl_status rl_tensor_share(rl_tensor* tensor, rl_tensor** result) {
    empty(result);
    return guarded([&] {
        require(result, "rl_tensor_share", "result");
        *result = handle_of(tensor_of(tensor, "rl_tensor_share", "tensor"));
    });
}

RL_API void rl_tensor_free(rl_tensor* tensor) {
    Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(tensor));
}

RL_API rl_status rl_tensor_describe(const rl_tensor* tensor, rl_tensor_info* info) {
    empty_sized(info);
    return guarded([&] {
        require(info, "rl_tensor_describe", "info");
        RL_CHECK(info->struct_size >= sizeof(rl_tensor_info), throw_value,
                 "rl_tensor_describe(info.struct_size): must be at least %zu, got %zu",
                 sizeof(rl_tensor_info), info->struct_size);
        const Tensor t = tensor_of(tensor, "rl_tensor_describe", "tensor");
        *info = {info->struct_size,
                 static_cast<int32_t>(t.dtype()),
                 static_cast<int32_t>(t.dim()),
                 t.sizes().data(),
                 t.strides().data(),
                 t.numel(),
                 {static_cast<int32_t>(t.device().type), t.device().index},
                 t.requires_grad(),
                 t.is_leaf(),
                 t.is_contiguous(),
                 t.impl()->storage() && t.impl()->storage()->read_only()};
    });
}

// --- gradients ---

RL_API int32_t rl_grad_mode(void) { return grad_mode(); }

RL_API int32_t rl_set_grad_mode(int32_t on) {
    const bool before = grad_mode();
    set_grad_mode(on != 0);
    return before;
}

RL_API rl_status rl_tensor_set_requires_grad(rl_tensor* tensor, int32_t on) {
    return guarded(
        [&] { tensor_of(tensor, "rl_tensor_set_requires_grad", "tensor").set_requires_grad(on != 0); });
}

RL_API rl_status rl_tensor_grad(const rl_tensor* tensor, rl_tensor** result) {
    empty(result);
    return guarded([&] {
        require(result, "rl_tensor_grad", "result");
        *result = handle_of(tensor_of(tensor, "rl_tensor_grad", "tensor").grad());
    });
}

RL_API rl_status rl_tensor_set_grad(rl_tensor* tensor, rl_tensor* gradient) {
    return guarded(
        [&] { set_gradient(tensor_of(tensor, "rl_tensor_set_grad", "tensor"), optional_tensor(gradient)); });
}

RL_API rl_status rl_backward(rl_tensor* const* tensors, rl_tensor* const* gradients, size_t count,
                             const rl_backward_options* options) {
    return guarded([&] {
        RL_CHECK(count, throw_value, "rl_backward(count): must be at least 1");
        rl_backward_options given{};
        if (options) {
            RL_CHECK(options->struct_size >= sizeof(rl_backward_options), throw_value,
                     "rl_backward(options.struct_size): must be at least %zu, got %zu",
                     sizeof(rl_backward_options), options->struct_size);
            given = *options;
            RL_CHECK(!given.inputs || given.num_inputs, throw_value,
                     "rl_backward(options.num_inputs): must be at least 1 where inputs are given");
        }
        const auto outputs = tensors_of(tensors, count, false, "rl_backward", "tensors");
        const auto grads = gradients ? tensors_of(gradients, count, true, "rl_backward", "gradients")
                                     : std::vector<Tensor>(count);
        const auto inputs =
            tensors_of(given.inputs, given.num_inputs, false, "rl_backward", "options.inputs");
        run_backward(outputs, grads, inputs, given.retain_graph != 0, given.create_graph != 0);
    });
}

// --- random numbers ---

RL_API rl_status rl_manual_seed(uint64_t seed) {
    return guarded([&] { default_generator().manual_seed(seed); });
}

RL_API rl_status rl_generator_new(uint64_t seed, rl_generator** result) {
    empty(result);
    return guarded([&] {
        require(result, "rl_generator_new", "result");
        *result = reinterpret_cast<rl_generator*>(Generator::make({}, seed).release());
    });
}

RL_API void rl_generator_free(rl_generator* generator) {
    Ref<Generator>::adopt(reinterpret_cast<Generator*>(generator));
}

}  // extern "C"
