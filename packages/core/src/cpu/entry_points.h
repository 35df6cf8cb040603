// Every CPU kernel that an operator of kind "custom" calls.
#pragma once

#include "cpu/matmul.h"
