/* A program in C: foreign memory, operators by name and as functions, errors on two threads, a child process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rushlight/rushlight.h"

static int released = 0;
static void release(void* context) {
    free(context);
    ++released;
}

static void check(rl_status status) {
    if (status == RL_OK) return;
    fprintf(stderr, "%d: %s\n", (int)status, rl_error_text());
    exit(1);
}

static void expect(int condition, const char* what) {
    if (condition) return;
    fprintf(stderr, "%s; the last error is %s\n", what, rl_error_text());
    exit(1);
}

static rl_tensor* matrix(void) {
    float* data = malloc(6 * sizeof(float));
    for (int i = 0; i < 6; ++i) data[i] = (float)i;
    const int64_t sizes[] = {2, 3};
    const rl_array array = {sizeof(rl_array), RL_FLOAT32, 2, sizes, NULL, data, release, data, 0};
    rl_tensor* made = NULL;
    check(rl_tensor_from_array(&array, &made));
    return made;
}

/* The sums of the rows of 2 * x: 6 24. */
static void compute(void) {
    rl_tensor* x = matrix();
    rl_value given[2] = {{.kind = RL_TENSOR, .as.tensor = x}, {.kind = RL_REAL, .as.real = 2.0}};
    rl_value doubled, sums;
    check(rl_call("mul", given, 2, &doubled, 1));
    const int64_t dim = 1;
    rl_value rest[2] = {doubled, {.kind = RL_INTEGERS, .count = 1, .as.integers = &dim}};
    check(rl_call("sum", rest, 2, &sums, 1));
    rl_array seen = {.struct_size = sizeof(rl_array)};
    check(rl_tensor_to_array(sums.as.tensor, &seen));
    rl_value_free(&sums); /* the memory that was exported stays valid */
    const float* numbers = seen.data;
    expect(seen.ndim == 1 && seen.sizes[0] == 2 && numbers[0] == 6 && numbers[1] == 24, "sums are wrong");
    rl_array_free(&seen);
    rl_value_free(&doubled);
    rl_tensor* same = NULL;
    check(rl_op_relu(x, &same));
    rl_tensor_free(same);
    rl_tensor_free(x);
}

/* Each thread has separate errors. */
static void* fail_often(void* name) {
    char wanted[80];
    snprintf(wanted, sizeof wanted, "there is no operator '%s'", (const char*)name);
    for (int i = 0; i < 200; ++i) {
        expect(rl_call(name, NULL, 0, NULL, 0) == RL_ERROR_RUNTIME, "an unknown operator was called");
        expect(rl_error_status() == RL_ERROR_RUNTIME, "the status is another");
        expect(strncmp(rl_error_text(), wanted, strlen(wanted)) == 0, "the text is another thread's");
    }
    return NULL;
}

int main(void) {
    expect(rl_c_version() == RL_C_VERSION && rl_error_status() == RL_OK && *rl_error_text() == '\0',
           "it begins badly");
    compute();
    expect(released == 1, "the memory was not released");

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, fail_often, "first_operator");
    pthread_create(&threads[1], NULL, fail_often, "second_operator");
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    expect(rl_error_status() == RL_OK, "an error of another thread is seen");

    expect(rl_set_grad_mode(0) == 1 && rl_grad_mode() == 0 && rl_set_grad_mode(1) == 0,
           "the gradient mode is wrong");
    const pid_t child = fork();
    if (child == 0) {
        compute();
        _exit(released == 2 ? 0 : 3);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == 0, "the child failed");
    puts("ok");
    return 0;
}
