/* Runs programs from C, and from languages that can call C. Errors, memory and threads are handled as in
 * rushlight/rushlight.h. Any number of threads may run one program at the same time, unless the program writes to its
 * buffers. */
#ifndef RUSHLIGHT_GRAPH_C_H
#define RUSHLIGHT_GRAPH_C_H

#include "rushlight/rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_program rl_program;

/* Reads a program that export.save has written. Its tensors are memory-mapped, not copied. */
rl_status rl_program_load(const char* path, rl_program** program);
/* Frees a program, which may be null. Results of its runs stay valid. */
void rl_program_free(rl_program* program);
rl_status rl_program_counts(const rl_program* program, size_t* inputs, size_t* outputs);
/* Sets `name` to the name of an input. The string is valid as long as the program. */
rl_status rl_program_input_name(const rl_program* program, size_t input, const char** name);

/* Runs the program on arrays. The call takes ownership of inputs that have a release function, even if it fails. It
 * fills the arrays in `outputs`, whose struct_size must be set. The caller frees each of these arrays with
 * rl_array_free. */
rl_status rl_program_run(const rl_program* program, const rl_array* inputs, size_t num_inputs,
                         rl_array* outputs, size_t num_outputs);
/* Runs the program on tensors. The caller keeps the ownership of the inputs. `outputs` is filled with handles; the
 * caller frees each handle with rl_tensor_free. A result may share memory with an input. */
rl_status rl_program_call(const rl_program* program, rl_tensor* const* inputs, size_t num_inputs,
                          rl_tensor** outputs, size_t num_outputs);

/* Returns a parameter, buffer or other tensor of the program by its name. The handle refers to the memory that the
 * program reads and, if it trains, writes. Tensors of a file are read-only if the program does not write to them. */
rl_status rl_program_tensor(const rl_program* program, const char* name, rl_tensor** result);
/* Writes the program with the current values of its tensors to a file, which replaces `path` when it is complete. Fails if
 * a tensor was given another shape or dtype. While it writes, no other thread may run a program that writes to its tensors. */
rl_status rl_program_save(const rl_program* program, const char* path);

#ifdef __cplusplus
}
#endif

#endif
