#include "ops/broadcasting.h"

#include <algorithm>

#include "rushlight/error.h"

namespace rushlight {

std::vector<int64_t> broadcast_shapes(const char* op, const char* first_name, IntList first,
                                      const char* second_name, IntList second) {
    size_t n = std::max(first.size(), second.size());
    std::vector<int64_t> joint(n);
    for (size_t d = 0; d < n; ++d) {
        int64_t a = d < n - first.size() ? 1 : first[d - (n - first.size())];
        int64_t b = d < n - second.size() ? 1 : second[d - (n - second.size())];
        RL_CHECK(a == b || a == 1 || b == 1, throw_runtime,
                 "%s(%s, %s): shapes %s and %s do not broadcast: dimension %zu has sizes %lld and %lld", op,
                 first_name, second_name, to_string(first).c_str(), to_string(second).c_str(), d,
                 (long long)a, (long long)b);
        joint[d] = a == 1 ? b : a;
    }
    return joint;
}

}  // namespace rushlight
