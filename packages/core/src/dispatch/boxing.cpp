#include "dispatch/boxing.h"

namespace rushlight::detail {

void bad_boxed_argument(const Operator& op, size_t position, const char* wanted) {
    throw_type("%s: boxed value %zu must be %s\nhint: the schema is %s", op.name, position, wanted,
               op.schema);
}

void bad_boxed_count(const Operator& op, size_t got, size_t wanted) {
    throw_type("%s: %zu boxed values where %zu are needed\nhint: the schema is %s", op.name, got, wanted,
               op.schema);
}

}  // namespace rushlight::detail
