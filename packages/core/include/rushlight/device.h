// Where a tensor's memory is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rushlight/export.h"

namespace rushlight {

// `Plugin` is the slot of one more backend, named by itself (design section 7 and 9).
enum class DeviceType : uint8_t { CPU, CUDA, Meta, Plugin };
inline constexpr int kNumDeviceTypes = 4;

struct Device {
    DeviceType type = DeviceType::CPU;
    int8_t index = -1;  // -1: the current one

    friend bool operator==(Device a, Device b) { return a.type == b.type && a.index == b.index; }
};

/// "cpu", "cuda:0".
RL_API std::string name(Device device);
/// Parses "cpu", "meta", "cuda", "cuda:1" or a backend's own name; anything else raises RuntimeError.
RL_API Device parse_device(std::string_view text);
/// Gives the `Plugin` slot a name; one backend a process.
RL_API void name_plugin_device(std::string_view text);

}  // namespace rushlight
