// Symbol visibility of librushlight: everything is hidden except names marked RL_API.
#pragma once

#define RL_API __attribute__((visibility("default")))

// The model of thread-local variables that are read without a function call. The dynamic linker always loads
// librushlight into its static TLS surplus, so the initial-exec model is valid.
#define RL_TLS_MODEL __attribute__((tls_model("initial-exec")))

// Marks of functions for both host and device. RL_HD is always inlined. A call for each element would prevent
// vectorisation of the loop. It would also leave a function that is compiled for one CPU capability but whose name does
// not contain that capability. RL_HD_CALL is not always inlined; it is for functions that are long or rarely called.
#if defined(__CUDACC__)
#define RL_HD __host__ __device__
#define RL_HD_CALL __host__ __device__
#else
#define RL_HD __attribute__((always_inline))
#define RL_HD_CALL
#endif
