// Calls while threads and the process end: destructors of pthread keys, functions of atexit, and destructors of the program.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rushlight/rushlight.h"

#define CHECK(ok) \
    if (!(ok)) {  \
        fprintf(stderr, "%s, line %d: %s\n", #ok, __LINE__, rl_error_text()); \
        _exit(1); \
    }

static pthread_key_t before, after;
static rl_tensor* kept;
static int calls;

static rl_value zeros(const char* name, const int64_t* sizes, size_t count) {
    rl_value argument = {.kind = RL_INTEGERS, .count = count, .as.integers = sizes}, made;
    CHECK(rl_call(name, &argument, 1, &made, 1) == RL_OK);
    return made;
}

// Calls operators that keep values for each thread: the stack of rl_call, primitives of convolutions, and factors of
// Fourier transforms.
static void call(void) {
    const int64_t image[] = {2, 16, 32 + calls, 32}, filter[] = {32, 16, 3, 3};  // a new primitive in each call
    rl_value given[] = {zeros("ones", image, 4), zeros("ones", filter, 4)}, made, transformed;
    CHECK(rl_call("conv2d", given, 2, &made, 1) == RL_OK);
    CHECK(rl_call("fft_fft", &made, 1, &transformed, 1) == RL_OK);
    rl_value_free(&transformed);
    rl_value_free(&made);
    for (int i = 0; i < 2; ++i) rl_value_free(&given[i]);
    CHECK(rl_call("an_operator_that_does_not_exist_and_has_a_long_name", NULL, 0, &made, 1) == RL_ERROR_RUNTIME);
    CHECK(strstr(rl_error_text(), "an_operator_that_does_not_exist_and_has_a_long_name"));
    CHECK(rl_error_status() == RL_ERROR_RUNTIME);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static void end_of_thread(void* value) {
    (void)value;
    call();
}

static void* thread(void* unused) {
    (void)unused;
    pthread_setspecific(before, &calls);
    call();
    pthread_setspecific(after, &calls);
    return NULL;
}

static void at_exit(void) {
    call();
    rl_tensor_free(kept);
    // Two threads, each with one call and two destructors; then the main thread, before and after its end.
    CHECK(calls == 2 * 3 + 2);
    puts("ok");
}

int main(void) {
    CHECK(atexit(at_exit) == 0);
    CHECK(pthread_key_create(&before, end_of_thread) == 0);  // made before the library makes its keys
    call();
    CHECK(pthread_key_create(&after, end_of_thread) == 0);
    for (int i = 0; i < 2; ++i) {
        pthread_t started;
        CHECK(pthread_create(&started, NULL, thread, NULL) == 0);
        CHECK(pthread_join(started, NULL) == 0);
    }
    const int64_t three = 3;
    kept = zeros("zeros", &three, 1).as.tensor;
    const pid_t child = fork();
    if (child == 0) {
        call();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
