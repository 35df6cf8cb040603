/* Programs from C, and from languages that call C. Errors, memory and threads are those of rushlight/rushlight.h. Any number of
 * threads may run one program at a time, unless it writes to its buffers. */
#ifndef RUSHLIGHT_GRAPH_C_H
#define RUSHLIGHT_GRAPH_C_H

#include "rushlight/rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_program rl_program;

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
/* The same on tensors. The inputs stay their owners'; `outputs` are filled with handles, each freed by rl_tensor_free. A result may share
 * memory with an input. */
rl_status rl_program_call(const rl_program* program, rl_tensor* const* inputs, size_t num_inputs,
                          rl_tensor** outputs, size_t num_outputs);

/* A parameter, buffer or other tensor of the program by name: a handle to its memory, which the program reads and, where it trains,
 * writes. Tensors of a file that it only reads are read-only. */
rl_status rl_program_tensor(const rl_program* program, const char* name, rl_tensor** result);
/* Writes the program with its tensors as they are now, in place of `path` when the file is complete. */
rl_status rl_program_save(const rl_program* program, const char* path);

#ifdef __cplusplus
}
#endif

#endif
