/* Gradients for C programs. The functions that compute gradients are in rushlight/rushlight.h. */
#ifndef RUSHLIGHT_AUTOGRAD_C_H
#define RUSHLIGHT_AUTOGRAD_C_H

#include "rushlight/rushlight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attaches librushlight_autograd.so to librushlight.so: afterwards operators are recorded, and rl_backward works.
 * Must be called once before the first tensor requires grad; further calls do nothing. */
rl_status rl_autograd_initialize(void);

#ifdef __cplusplus
}
#endif

#endif
