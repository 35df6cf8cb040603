// For operators that write several arguments. All arguments are checked before the version of any of them changes.
#pragma once
#include "ops/outputs.h"

namespace rushlight {

inline void check_each_writable(const char* op, const Tensor& t) {
    if (t.defined()) check_writable(op, t);
}
inline void check_each_writable(const char* op, TensorList list) {
    for (const Tensor& t : list) check_each_writable(op, t);
}
template <class... T>
void check_all_writable(const char* op, const T&... tensors) {
    (check_each_writable(op, tensors), ...);
}

}  // namespace rushlight
