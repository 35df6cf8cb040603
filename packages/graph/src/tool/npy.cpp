#include "npy.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/permute.h"

namespace rushlight::graph {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
// Without the character for the order of bytes.
constexpr const char* kNames[kNumDTypes] = {"b1", "u1", "i1", "i2", "i4", "i8", "f2", nullptr,
                                            "f4", "f8", "u2", "u4", "u8", "c8", "c16"};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw_value("'%s': %s", path.c_str(), why.c_str());
}

// Returns the dtype that a name such as "<f4" represents. "=" and no character mean the order of this machine.
DType dtype_named(std::string_view descr, const std::string& path) {
    const bool has_order =
        !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
    const std::string_view name = descr.substr(has_order ? 1 : 0);
    for (int i = 0; i < kNumDTypes; ++i) {
        if (!kNames[i] || name != kNames[i]) continue;
        const auto dtype = static_cast<DType>(i);
        if (descr[0] != '>' || itemsize(dtype) == 1) return dtype;
        fail(path, "its dtype '" + std::string(descr) +
                       "' is not supported\nhint: convert the array to little-endian numbers");
    }
    fail(path, "its dtype '" + std::string(descr) + "' is not supported");
}

// Reads the header, which is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class Header {
  public:
    Header(std::string_view text, const std::string& path) : rest_(text), path_(path) {
        bool has_dtype = false, has_order = false, has_shape = false;
        expect('{');
        while (!take('}')) {
            const std::string_view key = string();
            expect(':');
            if (key == "descr" && !std::exchange(has_dtype, true)) read_dtype();
            else if (key == "fortran_order" && !std::exchange(has_order, true)) read_order();
            else if (key == "shape" && !std::exchange(has_shape, true)) read_shape();
            else wrong();
            if (take('}')) break;
            expect(',');
        }
        if (!has_dtype || !has_order || !has_shape) fail(path_, "its header lacks a key");
        skip_space();
        if (!rest_.empty()) wrong();
    }

    DType dtype{};
    bool fortran = false;
    std::vector<int64_t> shape;
    int64_t elements = 1;

  private:
    [[noreturn]] void wrong() const { fail(path_, "its header is not the one of a .npy file"); }

    void skip_space() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(std::string_view(" \t\r\n\f")), rest_.size()));
    }
    bool take(char c) {
        skip_space();
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void expect(char c) {
        if (!take(c)) wrong();
    }
    std::string_view string() {
        skip_space();
        const char quote = rest_.empty() ? '\0' : rest_[0];
        if (quote != '\'' && quote != '"') wrong();
        const size_t end = rest_.find(quote, 1);
        if (end == rest_.npos) wrong();
        const std::string_view text = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return text;
    }

    void read_dtype() {
        skip_space();
        if (rest_.starts_with('[')) fail(path_, "its elements are records, which are not supported");
        dtype = dtype_named(string(), path_);
    }
    void read_order() {
        skip_space();
        fortran = rest_.starts_with("True");
        if (!fortran && !rest_.starts_with("False")) wrong();
        rest_.remove_prefix(fortran ? 4 : 5);
    }
    void read_shape() {
        if (!take('(')) fail(path_, "its shape must be a tuple");
        bool comma = true, any_comma = false;
        while (!take(')')) {
            if (!comma) fail(path_, "its shape must be a tuple of sizes");
            const int64_t size = read_size();
            if (__builtin_mul_overflow(elements, size, &elements)) fail(path_, "it is too large");
            shape.push_back(size);
            comma = take(',');
            any_comma |= comma;
        }
        if (shape.size() == 1 && !any_comma) fail(path_, "its shape must be a tuple");  // (6) is a number
    }
    int64_t read_size() {
        skip_space();
        int64_t size = 0;
        const char* end = rest_.data() + rest_.size();
        const auto [next, error] = std::from_chars(rest_.data(), end, size);
        if (error == std::errc::result_out_of_range) fail(path_, "a size is too large");
        if (error != std::errc() || size < 0 || shape.size() == kMaxDims)
            fail(path_, "its shape must be a tuple of sizes");
        rest_.remove_prefix(static_cast<size_t>(next - rest_.data()));
        if (rest_.starts_with('L')) rest_.remove_prefix(1);  // NumPy wrote this in Python 2
        return size;
    }

    std::string_view rest_;
    const std::string& path_;
};

std::string read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "rb"),
                                                                  std::fclose);
    RL_CHECK(file, throw_runtime, "cannot open '%s': %s", path.c_str(), std::strerror(errno));
    std::string bytes;
    std::vector<char> block(1 << 20);
    while (const size_t count = std::fread(block.data(), 1, block.size(), file.get()))
        bytes.append(block.data(), count);
    RL_CHECK(!std::ferror(file.get()), throw_runtime, "cannot read '%s': %s", path.c_str(),
             std::strerror(errno));
    return bytes;
}

}  // namespace

Tensor read_npy(const std::string& path) {
    const std::string bytes = read_file(path);
    if (bytes.size() < 12 || std::memcmp(bytes.data(), kMagic, 6) != 0) fail(path, "it is not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3) fail(path, "its version of the .npy format is not supported");
    const bool wide = bytes[6] >= 2;
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
    const size_t start = (wide ? 12 : 10) + size_t{length};
    if (start > bytes.size()) fail(path, "it ends within its header");
    const Header header({bytes.data() + (wide ? 12 : 10), length}, path);
    std::vector<int64_t> stored = header.shape;
    if (header.fortran) std::reverse(stored.begin(), stored.end());
    const size_t item = itemsize(header.dtype);
    if (static_cast<size_t>(header.elements) != (bytes.size() - start) / item ||
        (bytes.size() - start) % item)
        fail(path, "its length does not match its shape and dtype");
    Tensor t = make_tensor(stored, header.dtype);
    if (header.elements) std::memcpy(t.data<void>(), bytes.data() + start, bytes.size() - start);
    if (!header.fortran) return t;
    std::vector<int64_t> dims;
    for (auto d = t.dim(); d-- > 0;) dims.push_back(d);
    return ops::contiguous(ops::permute(t, dims));
}

void write_npy(const std::string& path, const Tensor& given) {
    const char* descr = kNames[static_cast<int>(given.dtype())];
    RL_CHECK(descr, throw_not_implemented, "cannot write '%s': .npy files have no %s", path.c_str(),
             name(given.dtype()));
    const Tensor t = ops::contiguous(given);
    std::string header = std::string("{'descr': '") + (itemsize(t.dtype()) == 1 ? '|' : '<') + descr +
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
