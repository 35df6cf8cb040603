// Every CPU kernel that an operator of kind "custom" calls.
#pragma once

#include "cpu/attention.h"
#include "cpu/convolution.h"
#include "cpu/ctc.h"
#include "cpu/embedding.h"
#include "cpu/linalg.h"
#include "cpu/loss.h"
#include "cpu/matmul.h"
#include "cpu/norm.h"
#include "cpu/optimizer.h"
#include "cpu/pool.h"
#include "cpu/random.h"
#include "cpu/recurrent.h"
#include "cpu/resample.h"
#include "cpu/running.h"
#include "cpu/sampling.h"
#include "cpu/softmax.h"
