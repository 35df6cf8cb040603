// Symbol visibility of librushlight: everything is hidden except names marked RL_API.
#pragma once

#define RL_API __attribute__((visibility("default")))

// A variable per thread, reached without a call: librushlight is always loaded by the dynamic linker's
// static TLS surplus, so the initial-exec model holds.
#define RL_TLS_MODEL __attribute__((tls_model("initial-exec")))

// A function shared by host and device. RL_HD is always inlined into its loop: a call per element would keep the loop
// from becoming vector code, and would leave a function of one capability's registers that carries no capability in its
// name. RL_HD_CALL is not always inlined: it is for functions that are long or rarely called.
#if defined(__CUDACC__)
#define RL_HD __host__ __device__
#define RL_HD_CALL __host__ __device__
#else
#define RL_HD __attribute__((always_inline))
#define RL_HD_CALL
#endif
