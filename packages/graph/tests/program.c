/* A C program: runs a model on an array and prints the results. */
#include <stdio.h>
#include <stdlib.h>

#include "rushlight/graph/c.h"

static int released = 0;
static void release(void* context) {
    free(context);
    ++released;
}

static int fails(const char* what) {
    fprintf(stderr, "%s: %s\n", what, rl_error_text());
    return 1;
}

int main(int count, char** words) {
    rl_program* program = NULL;
    size_t inputs = 0, outputs = 0;
    const char* name = NULL;
    if (count != 2 || rl_c_version() != RL_C_VERSION) return 2;
    if (rl_program_load(words[1], &program) != RL_OK) return fails("load");
    if (rl_program_counts(program, &inputs, &outputs) != RL_OK || inputs != 1 || outputs != 2) return fails("counts");
    if (rl_program_input_name(program, 0, &name) != RL_OK) return fails("name");
    printf("%s\n", name);

    float* data = malloc(6 * sizeof(float));
    for (int i = 0; i < 6; ++i) data[i] = (float)i;
    const int64_t sizes[] = {2, 3};
    rl_array input = {sizeof(rl_array), RL_FLOAT32, 2, sizes, NULL, data, release, data};
    rl_array results[2] = {{sizeof(rl_array)}, {sizeof(rl_array)}};
    if (rl_program_run(program, &input, 1, results, 2) != RL_OK) return fails("run");
    rl_program_free(program); /* results stay valid */
    for (int i = 0; i < 4; ++i) printf("%a\n", ((const float*)results[0].data)[i]);
    rl_array_free(&results[0]);
    rl_array_free(&results[0]);
    rl_array_free(&results[1]);
    printf("%d\n", released);
    return 0;
}
