// Threads that load the library, call it, and unload it before they end.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "rushlight/rushlight.h"

typedef rl_status (*rl_call_type)(const char*, const rl_value*, size_t, rl_value*, size_t);

static void* thread(void* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    rl_call_type call = (rl_call_type)dlsym(library, "rl_call");
    rl_value result;
    const int failed = call && call("an_operator_that_does_not_exist", NULL, 0, &result, 1) == RL_ERROR_RUNTIME;
    return dlclose(library) == 0 && failed ? path : NULL;
}

int main(int count, char** words) {
    for (int i = 0; i < 3; ++i) {
        pthread_t started;
        void* passed = NULL;
        if (count != 2 || pthread_create(&started, NULL, thread, words[1]) != 0) return 1;
        pthread_join(started, &passed);
        if (!passed) return 1;
    }
    puts("ok");
    return 0;
}
