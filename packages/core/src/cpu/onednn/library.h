// oneDNN, which is loaded on first use. Only files in this folder include its headers. In a build without oneDNN,
// these files are empty, or contain functions that do nothing.
#pragma once

#if RUSHLIGHT_WITH_ONEDNN

#include <oneapi/dnnl/dnnl.h>

namespace rushlight::cpu::onednn {

/// Whether oneDNN can be used. This is true if the library is bundled and can be loaded, and RUSHLIGHT_COMPUTE is not
/// "plain".
bool available();

/// `enabled` returns whether oneDNN is available and switched on; `enable` switches it on or off. It is on by
/// default.
bool enabled();
void enable(bool on);

/// Switches oneDNN off at the end of the process, before the objects are destroyed that oneDNN has made until this call.
/// Functions of atexit that were registered earlier run later, and may call operators.
void switch_off_at_exit();

// The oneDNN functions that we call. Each function is a member of Functions, named without the prefix dnnl_.
// clang-format off
#define RL_ONEDNN_FUNCTIONS(X)                                                                            \
    X(engine_create) X(stream_create) X(stream_destroy)                                                   \
    X(primitive_attr_create) X(primitive_attr_set_scratchpad_mode)                                        \
    X(memory_desc_create_with_strides) X(memory_desc_create_with_tag) X(memory_desc_destroy)              \
    X(memory_desc_equal) X(memory_desc_get_size) X(memory_desc_clone)                                     \
    X(memory_create) X(memory_destroy) X(memory_set_data_handle)                                          \
    X(primitive_desc_query_md) X(primitive_desc_destroy)                                                  \
    X(primitive_create) X(primitive_destroy) X(primitive_execute)                                         \
    X(reorder_primitive_desc_create) X(convolution_forward_primitive_desc_create)                         \
    X(convolution_backward_data_primitive_desc_create) X(convolution_backward_weights_primitive_desc_create)
// clang-format on

struct Functions {
#define RL_MEMBER(f) decltype(&dnnl_##f) f;
    RL_ONEDNN_FUNCTIONS(RL_MEMBER)
#undef RL_MEMBER
};

/// Returns oneDNN's functions. Call this only if available() is true.
const Functions& functions();

/// engine() returns the engine of the process. attributes() returns the attributes of primitives for which the caller
/// provides the scratch memory, because oneDNN's own scratch memory is tied to the thread that created a primitive.
dnnl_engine_t engine();
dnnl_primitive_attr_t attributes();
/// Returns the stream of this thread.
dnnl_stream_t stream();

/// Raises RuntimeError unless `status` is success.
void check(dnnl_status_t status, const char* what);

}  // namespace rushlight::cpu::onednn

#endif
