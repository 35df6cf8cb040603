// Programs for C: rushlight/graph/c.h.
#include "rushlight/graph/c.h"

#include <algorithm>
#include <memory>
#include <new>

#include "rushlight/export.h"
#include "rushlight/graph/program.h"

struct rl_program {
    rushlight::graph::Program program;
};

namespace rushlight::graph {
namespace {

static_assert(RL_COMPLEX128 == static_cast<int>(DType::Complex128) &&
              RL_FLOAT32 == static_cast<int>(DType::Float32) && RL_UINT16 == static_cast<int>(DType::UInt16));

thread_local std::string error_text;

rl_status status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::Runtime:
        case ErrorKind::LinAlg: return RL_ERROR_RUNTIME;
        case ErrorKind::Value:
        case ErrorKind::Buffer: return RL_ERROR_VALUE;
        case ErrorKind::Type: return RL_ERROR_TYPE;
        case ErrorKind::Index: return RL_ERROR_INDEX;
        case ErrorKind::NotImplemented: return RL_ERROR_NOT_IMPLEMENTED;
        case ErrorKind::OutOfMemory: return RL_ERROR_OUT_OF_MEMORY;
        case ErrorKind::Interrupted: break;
    }
    return RL_ERROR_OTHER;
}

rl_status fail(rl_status status, const char* text) noexcept {
    try {
        error_text = text;
    } catch (...) { error_text.clear(); }
    return status;
}

template <class F>
rl_status guarded(F&& body) noexcept {
    try {
        body();
        return RL_OK;
    } catch (const Error& error) {
        return fail(status_of(error.kind()), error.what());
    } catch (const std::bad_alloc&) {
        return fail(RL_ERROR_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) { return fail(RL_ERROR_OTHER, error.what()); } catch (...) {
        return fail(RL_ERROR_OTHER, "an unknown error");
    }
}

void require(const void* pointer, const char* function, const char* argument) {
    RL_CHECK(pointer, throw_value, "%s(%s): must not be null", function, argument);
}

// What a caller gave together with its memory, until the storage that takes over is there.
class Owned {
  public:
    Owned(const rl_array* arrays, size_t count) : arrays_(arrays), count_(arrays ? count : 0) {}
    ~Owned() {
        for (; taken_ < count_; ++taken_)
            if (arrays_[taken_].struct_size >= sizeof(rl_array) && arrays_[taken_].release)
                arrays_[taken_].release(arrays_[taken_].context);
    }
    const rl_array& next() const { return arrays_[taken_]; }
    void take() { ++taken_; }

  private:
    const rl_array* arrays_;
    size_t count_, taken_ = 0;
};

struct Release {
    void (*function)(void*);
    void* context;
};

Tensor tensor_of(Owned& owned, size_t index) {
    const rl_array& array = owned.next();
    RL_CHECK(array.struct_size >= sizeof(rl_array), throw_value,
             "rl_program_run(inputs): the struct_size of input %zu is %zu, needs %zu", index,
             array.struct_size, sizeof(rl_array));
    RL_CHECK(array.dtype >= 0 && array.dtype < kNumDTypes, throw_value,
             "rl_program_run(inputs): input %zu has no dtype", index);
    RL_CHECK(array.ndim >= 0 && array.ndim <= kMaxDims && (array.ndim == 0 || array.sizes), throw_value,
             "rl_program_run(inputs): input %zu has no sizes", index);
    std::vector<int64_t> sizes(array.sizes, array.sizes + array.ndim), strides(sizes.size());
    int64_t elements = 1, reach = 1, step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
        RL_CHECK(sizes[d] >= 0 && !__builtin_mul_overflow(elements, sizes[d], &elements), throw_value,
                 "rl_program_run(inputs): input %zu has a size that no array has", index);
        strides[d] = array.strides ? array.strides[d] : step;
        int64_t extent = 0;
        RL_CHECK(strides[d] >= 0 &&
                     !__builtin_mul_overflow(strides[d], std::max<int64_t>(sizes[d] - 1, 0), &extent) &&
                     !__builtin_add_overflow(reach, extent, &reach) &&
                     !__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step),
                 throw_value, "rl_program_run(inputs): input %zu has a stride that no array has", index);
    }
    RL_CHECK(elements == 0 || array.data, throw_value,
             "rl_program_run(inputs): the data of input %zu is null", index);
    const auto dtype = static_cast<DType>(array.dtype);
    size_t nbytes = 0;
    RL_CHECK(!__builtin_mul_overflow(static_cast<size_t>(elements ? reach : 0), itemsize(dtype), &nbytes),
             throw_value, "rl_program_run(inputs): input %zu is larger than any memory", index);
    auto release = array.release ? std::make_unique<Release>(Release{array.release, array.context}) : nullptr;
    const auto call = [](void* context, void*, size_t) {
        const std::unique_ptr<Release> release(static_cast<Release*>(context));
        release->function(release->context);
    };
    Ref<Storage> storage =
        Storage::wrap(elements ? array.data : nullptr, nbytes, Device{}, StorageKind::Foreign,
                      release ? ReleaseFn(call) : nullptr, release.get());
    static_cast<void>(release.release());  // the storage's from here on
    owned.take();
    return make_over(std::move(storage), sizes, strides, 0, dtype);
}

void hand_out(Tensor&& result, rl_array& array) {
    auto holder = std::make_unique<Tensor>(std::move(result));
    const Tensor& t = *holder;
    array.dtype = static_cast<int32_t>(t.dtype());
    array.ndim = static_cast<int32_t>(t.dim());
    array.sizes = t.sizes().data();
    array.strides = t.strides().data();
    array.data = t.data<void>();
    array.release = [](void* context) { delete static_cast<Tensor*>(context); };
    array.context = holder.release();
}

}  // namespace
}  // namespace rushlight::graph

using namespace rushlight;
using namespace rushlight::graph;

extern "C" {

RL_API uint32_t rl_c_version(void) { return RL_C_VERSION; }

RL_API const char* rl_error_text(void) { return error_text.c_str(); }

RL_API rl_status rl_program_load(const char* path, rl_program** program) {
    return guarded([&] {
        require(program, "rl_program_load", "program");
        *program = nullptr;
        require(path, "rl_program_load", "path");
        *program = new rl_program{Program::load(path)};
    });
}

RL_API void rl_program_free(rl_program* program) { delete program; }

RL_API rl_status rl_program_counts(const rl_program* program, size_t* inputs, size_t* outputs) {
    return guarded([&] {
        require(program, "rl_program_counts", "program");
        if (inputs) *inputs = program->program.graph().inputs.size();
        if (outputs) *outputs = program->program.graph().outputs.size();
    });
}

RL_API rl_status rl_program_input_name(const rl_program* program, size_t input, const char** name) {
    return guarded([&] {
        require(program, "rl_program_input_name", "program");
        require(name, "rl_program_input_name", "name");
        const std::vector<Input>& inputs = program->program.graph().inputs;
        RL_CHECK(input < inputs.size(), throw_index, "rl_program_input_name(input): %zu of %zu inputs", input,
                 inputs.size());
        *name = inputs[input].name.c_str();
    });
}

RL_API rl_status rl_program_run(const rl_program* program, const rl_array* inputs, size_t num_inputs,
                                rl_array* outputs, size_t num_outputs) {
    Owned owned(inputs, num_inputs);
    return guarded([&] {
        require(program, "rl_program_run", "program");
        if (num_inputs) require(inputs, "rl_program_run", "inputs");
        if (num_outputs) require(outputs, "rl_program_run", "outputs");
        const size_t wanted = program->program.graph().outputs.size();
        RL_CHECK(num_outputs == wanted, throw_value,
                 "rl_program_run(num_outputs): is %zu, the program has %zu results", num_outputs, wanted);
        for (size_t i = 0; i < num_outputs; ++i) {
            RL_CHECK(outputs[i].struct_size >= sizeof(rl_array), throw_value,
                     "rl_program_run(outputs): the struct_size of output %zu is %zu, needs %zu", i,
                     outputs[i].struct_size, sizeof(rl_array));
            outputs[i] = rl_array{outputs[i].struct_size, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr};
        }
        std::vector<Tensor> given;
        for (size_t i = 0; i < num_inputs; ++i) given.push_back(tensor_of(owned, i));
        std::vector<Tensor> results = program->program.run(given);
        try {
            for (size_t i = 0; i < num_outputs; ++i) hand_out(std::move(results[i]), outputs[i]);
        } catch (...) {
            for (size_t i = 0; i < num_outputs; ++i) rl_array_free(&outputs[i]);
            throw;
        }
    });
}

RL_API void rl_array_free(rl_array* array) {
    if (!array || array->struct_size < sizeof(rl_array)) return;
    if (array->release) array->release(array->context);
    *array = rl_array{array->struct_size, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr};
}

}  // extern "C"
