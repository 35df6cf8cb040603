/* Gradients for programs of C: rushlight/rushlight.h has the functions. */
#ifndef RUSHLIGHT_AUTOGRAD_C_H
#define RUSHLIGHT_AUTOGRAD_C_H

#include "rushlight/rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attaches librushlight_autograd.so to librushlight.so: operators record, and rl_backward works. To be called once, before the
 * first tensor requires grad; further calls do nothing. */
rl_status rl_autograd_initialize(void);

#ifdef __cplusplus
}
#endif

#endif
