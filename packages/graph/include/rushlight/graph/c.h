/* Programs from C, and from whatever calls C.
 *
 * No function throws or ends the process: it returns a status, and rl_error_text() says more, on the same thread. Any number of threads may run one
 * program at a time, unless it writes to its buffers. Every struct begins with its size, so that later versions may be longer. */
#ifndef RUSHLIGHT_GRAPH_C_H
#define RUSHLIGHT_GRAPH_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RL_C_VERSION 1

typedef enum rl_status {
    RL_OK = 0,
    RL_ERROR_RUNTIME,        /* a missing file, an operator that this library lacks */
    RL_ERROR_VALUE,          /* a damaged file, an input of another shape or dtype */
    RL_ERROR_TYPE,
    RL_ERROR_INDEX,
    RL_ERROR_NOT_IMPLEMENTED,
    RL_ERROR_OUT_OF_MEMORY,
    RL_ERROR_OTHER
} rl_status;

/* The numbers are part of the interface. */
typedef enum rl_dtype {
    RL_BOOL,
    RL_UINT8,
    RL_INT8,
    RL_INT16,
    RL_INT32,
    RL_INT64,
    RL_FLOAT16,
    RL_BFLOAT16,
    RL_FLOAT32,
    RL_FLOAT64,
    RL_UINT16,
    RL_UINT32,
    RL_UINT64,
    RL_COMPLEX64,
    RL_COMPLEX128
} rl_dtype;

/* Elements in the host's memory. */
typedef struct rl_array {
    size_t struct_size;      /* sizeof(rl_array), set by the caller, for results as well */
    int32_t dtype;           /* rl_dtype */
    int32_t ndim;
    const int64_t* sizes;
    const int64_t* strides;  /* in elements, not negative; null: row-major */
    void* data;
    /* Called once when the library no longer needs the memory; null: it is borrowed, and has to stay until the results of the call are freed,
     * which may be views of it. */
    void (*release)(void* context);
    void* context;
} rl_array;

typedef struct rl_program rl_program;

/* RL_C_VERSION of the library. */
uint32_t rl_c_version(void);
/* What went wrong last on this thread, in UTF-8; "" before. Valid until the next call of a function of this file on the thread. */
const char* rl_error_text(void);

/* Reads a program that export.save wrote. Its tensors are mapped, not copied. */
rl_status rl_program_load(const char* path, rl_program** program);
/* Null is allowed. Results stay valid. */
void rl_program_free(rl_program* program);
rl_status rl_program_counts(const rl_program* program, size_t* inputs, size_t* outputs);
/* The name of an input, valid as long as the program. */
rl_status rl_program_input_name(const rl_program* program, size_t input, const char** name);

/* Runs it. Inputs with a release function belong to the library from the call on, also where it fails. `outputs` are filled: their struct_size says
 * how long they are; each is freed by rl_array_free. */
rl_status rl_program_run(const rl_program* program, const rl_array* inputs, size_t num_inputs,
                         rl_array* outputs, size_t num_outputs);
/* Gives a result back, and sets its pointers to null. Null, and an array that was freed, are allowed. */
void rl_array_free(rl_array* array);

#ifdef __cplusplus
}
#endif

#endif
