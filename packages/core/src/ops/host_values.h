// Values that a composite reads. Values on a device are copied to the host first, which waits for the device.
#pragma once

#include "ops/copying.h"

namespace rushlight {

inline Tensor on_host(const Tensor& t) {
    if (t.device().type == DeviceType::CPU || t.device().type == DeviceType::Meta) return t;
    Tensor here = make_tensor(t.sizes(), t.dtype());
    copy_into(here, t);
    return here;
}

}  // namespace rushlight
