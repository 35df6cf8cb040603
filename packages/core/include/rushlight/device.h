// The device on which a tensor's memory is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rushlight/export.h"

namespace rushlight {

// `Plugin` is the type of one additional backend, which sets the name of the type (design sections 7 and 9).
enum class DeviceType : uint8_t { CPU, CUDA, Meta, Plugin };
inline constexpr int kNumDeviceTypes = 4;

struct Device {
    DeviceType type = DeviceType::CPU;
    int8_t index = -1;  // -1: the current device

    friend bool operator==(Device a, Device b) { return a.type == b.type && a.index == b.index; }
};

/// Returns a name such as "cpu" or "cuda:0".
RL_API std::string name(Device device);
/// Parses "cpu", "meta", "cuda", "cuda:1" or a backend's own name; anything else raises RuntimeError.
RL_API Device parse_device(std::string_view text);
/// Gives the device type `Plugin` its name. A process has at most one backend of this type.
RL_API void name_plugin_device(std::string_view text);

}  // namespace rushlight
