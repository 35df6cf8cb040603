// Where a tensor's memory lives.
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
/// Parses "cpu", "meta", "cuda", "cuda:1" or a backend's own name, which may attach it; anything else raises
/// RuntimeError.
RL_API Device parse_device(std::string_view text);
/// Gives the `Plugin` slot a name; one backend a process.
RL_API void name_plugin_device(std::string_view text);

/// Attaches the backend of that name where one is installed, and says whether it did. Asked when a device is
/// first used that has none; raises where the backend is installed and does not work.
using BackendFinder = bool (*)(std::string_view name);
RL_API void set_backend_finder(BackendFinder finder);
/// Asks the finder; false without one.
RL_API bool find_backend(std::string_view name);

}  // namespace rushlight
