#include "rushlight/python.h"

namespace rushlight {

const void* instance() {
    static const char mark = 0;
    return &mark;
}

}  // namespace rushlight
