#include "rushlight/device.h"

#include <atomic>
#include <charconv>
#include <mutex>

#include "rushlight/backend.h"
#include "rushlight/error.h"

namespace rushlight {
namespace {
std::mutex plugin_mutex;
std::string plugin_name;  // empty if no plug-in uses the slot

std::string plugin_device_name() {
    std::lock_guard lock(plugin_mutex);
    return plugin_name;
}

std::atomic<BackendFinder> backend_finder{nullptr};
}  // namespace

void set_backend_finder(BackendFinder finder) { backend_finder.store(finder); }

bool find_backend(std::string_view name) {
    BackendFinder finder = backend_finder.load();
    return finder && finder(name);
}

std::string name(Device device) {
    std::string text;
    switch (device.type) {
        case DeviceType::CPU: text = "cpu"; break;
        case DeviceType::CUDA: text = "cuda"; break;
        case DeviceType::Meta: text = "meta"; break;
        case DeviceType::Plugin: text = plugin_device_name(); break;
    }
    if (device.index >= 0) text += ":" + std::to_string(device.index);
    return text;
}

Device parse_device(std::string_view text) {
    std::string_view type = text.substr(0, text.find(':'));
    Device device;
    if (type == "cpu") device.type = DeviceType::CPU;
    else if (type == "cuda") device.type = DeviceType::CUDA;
    else if (type == "meta") device.type = DeviceType::Meta;
    else if (!type.empty() &&
             (type == plugin_device_name() || (find_backend(type) && type == plugin_device_name())))
        device.type = DeviceType::Plugin;
    else
        throw_runtime("device(%.*s): unknown device type '%.*s', expected cpu, cuda or meta",
                      int(text.size()), text.data(), int(type.size()), type.data());
    if (type.size() < text.size()) {
        int index = -1;
        const char* first = text.data() + type.size() + 1;
        const char* last = text.data() + text.size();
        auto [end, error] = std::from_chars(first, last, index);
        RL_CHECK(error == std::errc{} && end == last && index >= 0 && index < 128, throw_runtime,
                 "device(%.*s): the index after ':' must be an integer from 0 to 127", int(text.size()),
                 text.data());
        device.index = static_cast<int8_t>(index);
    }
    return device;
}

void name_plugin_device(std::string_view text) {
    std::lock_guard lock(plugin_mutex);
    RL_CHECK(plugin_name.empty() || plugin_name == text, throw_runtime,
             "a device backend named '%s' is loaded already, and a process can load only one besides CUDA",
             plugin_name.c_str());
    plugin_name = text;
}

}  // namespace rushlight
