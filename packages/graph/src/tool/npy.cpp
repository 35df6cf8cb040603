#include "npy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/permute.h"

namespace rushlight::graph {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr const char* kNames[kNumDTypes] = {"|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f2", nullptr,
                                            "<f4", "<f8", "<u2", "<u4", "<u8", "<c8", "<c16"};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw_value("'%s': %s", path.c_str(), why.c_str());
}

// Returns the text after "'key': " in the header, which is a Python literal.
std::string_view entry(std::string_view header, std::string_view key, const std::string& path) {
    const size_t at = header.find("'" + std::string(key) + "':");
    if (at == header.npos) fail(path, "its header lacks a key");
    std::string_view rest = header.substr(at + key.size() + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
}

std::vector<int64_t> read_shape(std::string_view text, const std::string& path) {
    std::vector<int64_t> shape;
    if (!text.starts_with('(')) fail(path, "its shape must be a tuple");
    text.remove_prefix(1);
    int64_t elements = 1;
    for (;;) {
        text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
        if (text.starts_with(')')) return shape;
        int64_t size = 0;
        size_t digits = 0;
        while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, text[digits] - '0', &size))
                fail(path, "a size is too large");
            ++digits;
        }
        if (digits == 0 || shape.size() == kMaxDims) fail(path, "its shape must be a tuple of sizes");
        if (__builtin_mul_overflow(elements, size, &elements)) fail(path, "it is too large");
        shape.push_back(size);
        text.remove_prefix(digits);
    }
}

}  // namespace

Tensor read_npy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    RL_CHECK(file, throw_runtime, "cannot open '%s': %s", path.c_str(), std::strerror(errno));
    std::ostringstream content;
    content << file.rdbuf();
    const std::string bytes = content.str();
    if (bytes.size() < 12 || std::memcmp(bytes.data(), kMagic, 6) != 0) fail(path, "it is not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3) fail(path, "its version of the .npy format is not supported");
    const bool wide = bytes[6] >= 2;
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
    const size_t start = (wide ? 12 : 10) + size_t{length};
    if (start > bytes.size()) fail(path, "it ends within its header");
    const std::string_view header(bytes.data() + (wide ? 12 : 10), length);
    std::string_view descr = entry(header, "descr", path);
    if (descr.starts_with('[')) fail(path, "its elements are records, which are not supported");
    if (!descr.starts_with('\'')) fail(path, "its dtype must be a name");
    descr = descr.substr(1, descr.find('\'', 1) - 1);
    int dtype = 0;
    while (dtype < kNumDTypes && (!kNames[dtype] || descr != kNames[dtype])) ++dtype;
    if (dtype == kNumDTypes) {
        const bool swapped = descr.starts_with('>');
        fail(path, "its dtype '" + std::string(descr) + "' is not supported" +
                       (swapped ? "\nhint: convert the array to little-endian numbers" : ""));
    }
    const std::vector<int64_t> shape = read_shape(entry(header, "shape", path), path);
    const bool fortran = entry(header, "fortran_order", path).starts_with("True");
    std::vector<int64_t> stored = shape;
    if (fortran) stored.assign(shape.rbegin(), shape.rend());
    int64_t elements = 1;
    for (int64_t size : stored) elements *= size;
    const size_t item = itemsize(static_cast<DType>(dtype));
    if (static_cast<size_t>(elements) != (bytes.size() - start) / item || (bytes.size() - start) % item)
        fail(path, "its length does not match its shape and dtype");
    Tensor t = make_tensor(stored, static_cast<DType>(dtype));
    if (elements) std::memcpy(t.data<void>(), bytes.data() + start, bytes.size() - start);
    if (!fortran) return t;
    std::vector<int64_t> dims;
    for (auto d = static_cast<int64_t>(shape.size()); d-- > 0;) dims.push_back(d);
    return ops::contiguous(ops::permute(t, dims));
}

void write_npy(const std::string& path, const Tensor& given) {
    const char* descr = kNames[static_cast<int>(given.dtype())];
    RL_CHECK(descr, throw_not_implemented, "cannot write '%s': .npy files have no %s", path.c_str(),
             name(given.dtype()));
    const Tensor t = ops::contiguous(given);
    std::string header = std::string("{'descr': '") + descr +
                         "', 'fortran_order': False, 'shape': " + to_string(t.sizes()) + ", }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    const auto length = static_cast<uint16_t>(header.size());
    std::ofstream file(path, std::ios::binary);
    file.write(kMagic, 6);
    file.write("\x01\x00", 2);
    file.write(reinterpret_cast<const char*>(&length), 2);
    file << header;
    if (t.numel())
        file.write(t.data<char>(),
                   static_cast<std::streamsize>(static_cast<size_t>(t.numel()) * itemsize(t.dtype())));
    file.close();
    RL_CHECK(file, throw_runtime, "cannot write '%s': %s", path.c_str(), std::strerror(errno));
}

}  // namespace rushlight::graph
