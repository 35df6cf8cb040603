// Note [File]
// A program is a safetensors file: 8 bytes with the length of the header, a header of JSON, and the elements. Any reader of
// that format can read the constants. The graph is stored as text under the key "rushlight.program" of
// `__metadata__`. If the text is longer than a megabyte, it is stored as a tensor of bytes with this name, so that
// other readers need not parse it.
#include "file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>

#include "encoding.h"
#include "rushlight/constant_memory.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/copy_.h"

namespace rushlight::graph {
namespace {

constexpr const char* kKey = "rushlight.program";
constexpr uint64_t kMostHeader = 100'000'000;  // the limit of the safetensors format
constexpr size_t kMostText = 1 << 20;
constexpr size_t kAlignment = 64;

constexpr const char* kDTypes[kNumDTypes] = {
    "BOOL", "U8",  "I8",  "I16", "I32",   "I64",     "F16",     "BF16",        "F32",         "F64",
    "U16",  "U32", "U64", "C64", nullptr, "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"};

// The content of the file, to which the storages of constants refer.
struct Bytes {
    char* data = nullptr;
    size_t size = 0;
    bool mapped = false;
    ~Bytes() {
        if (mapped && size) ::munmap(data, size);
        else if (!mapped) delete[] data;
    }
};
using Shared = std::shared_ptr<Bytes>;

// The part of the file's content that the storage of one constant refers to. It is read-only, unless the program
// writes to it.
struct Owner {
    Shared bytes;
    std::optional<ConstantMemory> unchanging;
};
void release(void* context, void*, size_t) { delete static_cast<Owner*>(context); }

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

[[noreturn]] void fail_system(const char* what, const std::string& path) {
    throw_runtime("program: %s '%s': %s", what, path.c_str(), std::strerror(errno));
}

// --- reading ---

struct Extent {
    DType dtype;
    std::vector<int64_t> sizes;
    size_t begin, end;
};

[[noreturn]] void fail(const std::string& what) { throw_value("program: %s", what.c_str()); }

Extent read_extent(const std::string& name, const Json& json, size_t room) {
    const Json *dtype = json.find("dtype"), *sizes = json.find("shape"), *offsets = json.find("data_offsets");
    const auto* word = dtype ? dtype->as<std::string>() : nullptr;
    const auto* list = sizes ? sizes->as<Json::List>() : nullptr;
    const auto* ends = offsets ? offsets->as<Json::List>() : nullptr;
    if (!word || !list || !ends || ends->size() != 2)
        fail("tensor '" + name + "' of the file has no dtype, shape or data_offsets");
    Extent extent{};
    const auto* known =
        std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const char* d) { return d && *word == d; });
    if (known == std::end(kDTypes)) fail("tensor '" + name + "' of the file has an unknown dtype");
    extent.dtype = static_cast<DType>(known - kDTypes);
    size_t bytes = itemsize(extent.dtype);
    for (const Json& size : *list) {
        const auto* n = size.as<int64_t>();
        if (!n || *n < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(*n), &bytes))
            fail("tensor '" + name + "' of the file has an invalid size");
        extent.sizes.push_back(*n);
    }
    const auto *begin = (*ends)[0].as<int64_t>(), *end = (*ends)[1].as<int64_t>();
    if (!begin || !end || *begin < 0 || *end < *begin || static_cast<size_t>(*end) > room)
        fail("tensor '" + name + "' is outside of the file: the file is truncated, or its header is wrong");
    if (static_cast<size_t>(*end - *begin) != bytes)
        fail("tensor '" + name + "' of the file has a length that does not match its dtype and shape");
    extent.begin = static_cast<size_t>(*begin);
    extent.end = static_cast<size_t>(*end);
    return extent;
}

// A program that writes to one of two tensors with common bytes would change the other, which is marked as unchanging.
void check_overlaps(const std::unordered_map<std::string_view, Extent>& extents) {
    using Named = std::pair<const std::string_view, Extent>;
    std::vector<const Named*> ordered;
    for (const Named& named : extents)
        if (named.second.begin < named.second.end) ordered.push_back(&named);
    std::sort(ordered.begin(), ordered.end(),
              [](const Named* a, const Named* b) { return a->second.begin < b->second.begin; });
    for (size_t i = 1; i < ordered.size(); ++i)
        if (ordered[i]->second.begin < ordered[i - 1]->second.end)
            fail("tensors '" + std::string(ordered[i - 1]->first) + "' and '" +
                 std::string(ordered[i]->first) + "' of the file overlap");
}

Tensor read_constant(const Constant& constant, const TensorType& type, const Extent& extent,
                     const Shared& bytes, size_t start) {
    if (extent.dtype != type.dtype || extent.sizes != type.sizes)
        fail("constant '" + constant.name + "' is " + to_text(type) + " in the graph and " +
             to_text(TensorType{extent.dtype, {}, extent.sizes}) +
             " in the file; the file may belong to another model");
    if (type.device.type != DeviceType::CPU)
        throw_not_implemented("program: constant '%s' is on %s, but only constants on the CPU can be loaded",
                              constant.name.c_str(), name(type.device).c_str());
    char* data = bytes->data + start + extent.begin;
    const size_t size = extent.end - extent.begin;
    const auto contiguous = [&](Ref<Storage> storage) {
        std::vector<int64_t> strides(type.sizes.size());
        int64_t step = 1;
        for (size_t d = strides.size(); d-- > 0; step *= std::max<int64_t>(type.sizes[d], 1))
            strides[d] = step;
        return make_over(std::move(storage), type.sizes, strides, 0, type.dtype);
    };
    const bool aligned = reinterpret_cast<uintptr_t>(data) % itemsize(type.dtype) == 0;
    Tensor tensor;
    if (aligned) {
        auto owner = std::make_unique<Owner>(bytes);
        if (!constant.written && size) owner->unchanging.emplace(data);
        Ref<Storage> storage = Storage::wrap(size ? data : nullptr, size, Device{},
                                             bytes->mapped ? StorageKind::Mapped : StorageKind::Foreign,
                                             release, owner.release());
        if (!constant.written) storage->set_read_only();
        tensor = contiguous(std::move(storage));
    } else {  // a file that another program wrote may not be aligned
        tensor = make_tensor(type.sizes, type.dtype);
        std::memcpy(tensor.data<void>(), data, size);
    }
    if (constant.strides.empty()) return tensor;
    // The strides in a malicious file may lead to addresses far beyond the elements.
    int64_t reach = 1;
    for (size_t d = 0; d < type.sizes.size(); ++d)
        reach += (std::max<int64_t>(type.sizes[d], 1) - 1) * constant.strides[d];
    if (reach != std::max<int64_t>(tensor.numel(), 1))
        fail("constant '" + constant.name + "' has strides that leave gaps");
    Tensor strided = make_strided(type.sizes, constant.strides, type.dtype);
    StagesOff untraced(kAllStages);
    return ops::copy_(strided, tensor);
}

Contents read(const Shared& bytes) {
    if (bytes->size < 8) fail("the file is too short for a header");
    uint64_t length = 0;
    std::memcpy(&length, bytes->data, 8);
    if (length > kMostHeader || length > bytes->size - 8)
        fail("the header's length is given as " + std::to_string(length) + " bytes, but the file has " +
             std::to_string(bytes->size));
    const Json header = Json::parse({bytes->data + 8, length}, "program: the file's header");
    const auto* members = header.as<Json::Object>();
    if (!members) fail("the file's header must be a JSON object");
    const size_t start = 8 + length, room = bytes->size - start;
    std::unordered_map<std::string_view, Extent> extents;
    for (const auto& [name, value] : *members)
        if (name != "__metadata__") extents.emplace(name, read_extent(name, value, room));
    check_overlaps(extents);

    std::string_view text;
    const Json* metadata = header.find("__metadata__");
    const Json* found = metadata ? metadata->find(kKey) : nullptr;
    if (found && found->as<std::string>()) {
        text = *found->as<std::string>();
    } else if (auto at = extents.find(kKey); at != extents.end()) {
        text = {bytes->data + start + at->second.begin, at->second.end - at->second.begin};
    } else {
        fail("the file contains tensors, but no program\nhint: save a program with export.save");
    }
    Contents contents{decode(Json::parse(text, "program: the graph")), {}};
    const Graph& graph = contents.graph;
    verify(graph);
    for (const Constant& constant : graph.constants) {
        auto at = extents.find(constant.name);
        if (at == extents.end())
            fail("the file has no data for the constant '" + constant.name + "' of its graph");
        contents.constants.push_back(
            read_constant(constant, graph.values[constant.value].type, at->second, bytes, start));
    }
    return contents;
}

// --- writing ---

struct Layout {
    std::string head;  // the header, preceded by its length
    std::vector<std::pair<const void*, size_t>> parts;  // addresses and sizes of the tensors' elements
    std::vector<Tensor> kept;  // owners of the memory that the parts point to
    std::string text;
};

Layout lay_out(const Graph& graph, TensorList constants) {
    Layout layout;
    layout.text = encode(graph).text();
    struct Part {
        std::string name, dtype;
        Json::List shape;
        const void* data;
        size_t size, item;
    };
    std::vector<Part> parts;
    StagesOff untraced(kAllStages);
    for (size_t i = 0; i < constants.size(); ++i) {
        const Tensor& given = constants[i];
        const char* dtype = kDTypes[static_cast<int>(given.dtype())];
        if (!dtype)
            throw_not_implemented("program: safetensors has no dtype for constant '%s', which is %s",
                                  graph.constants[i].name.c_str(), name(given.dtype()));
        const Tensor whole = ops::contiguous(given);
        layout.kept.push_back(whole);
        parts.push_back({graph.constants[i].name, dtype,
                         Json::List(given.sizes().begin(), given.sizes().end()), whole.data<void>(),
                         static_cast<size_t>(given.numel()) * itemsize(given.dtype()),
                         itemsize(given.dtype())});
    }
    // The tensors with the widest elements come first, so that each tensor is aligned to its elements.
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.item > b.item; });
    const bool apart = layout.text.size() > kMostText;
    if (apart)
        parts.push_back({kKey,
                         "U8",
                         {static_cast<int64_t>(layout.text.size())},
                         layout.text.data(),
                         layout.text.size(),
                         1});
    Json::Object metadata{{"format", "rushlight.program"}}, header;
    if (!apart) metadata.emplace_back(kKey, layout.text);
    header.emplace_back("__metadata__", std::move(metadata));
    size_t at = 0;
    for (const Part& part : parts) {
        header.emplace_back(part.name,
                            Json::Object{{"dtype", part.dtype},
                                         {"shape", part.shape},
                                         {"data_offsets", Json::List{static_cast<int64_t>(at),
                                                                     static_cast<int64_t>(at + part.size)}}});
        layout.parts.emplace_back(part.data, part.size);
        at += part.size;
    }
    std::string json = Json(std::move(header)).text();
    json.resize((json.size() + 8 + kAlignment - 1) / kAlignment * kAlignment - 8, ' ');
    RL_CHECK(json.size() <= kMostHeader, throw_value,
             "program: its header would have %zu bytes, at most %llu are allowed", json.size(),
             static_cast<unsigned long long>(kMostHeader));
    const uint64_t length = json.size();
    layout.head.assign(reinterpret_cast<const char*>(&length), 8);
    layout.head += json;
    return layout;
}

void write_all(int fd, const void* data, size_t size, const std::string& path) {
    const char* at = static_cast<const char*>(data);
    while (size) {
        const ssize_t n = ::write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail_system("cannot write", path);
        at += n;
        size -= static_cast<size_t>(n);
    }
}

// Returns the path of the file that `path` names. A symbolic link is followed, so that the link is kept and its target is
// replaced. A device or a pipe cannot be replaced by a file.
std::string replaceable(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return path;
    RL_CHECK(!S_ISDIR(info.st_mode), throw_runtime, "program: cannot write '%s': %s", path.c_str(),
             std::strerror(EISDIR));
    RL_CHECK(S_ISREG(info.st_mode), throw_runtime, "program: cannot write '%s': it is not a regular file",
             path.c_str());
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), std::free);
    if (!resolved) fail_system("cannot write", path);
    return resolved.get();
}

// Creates a file with a new name in the folder of `target`, and returns its descriptor. `path` is the name in errors.
int create_beside(const std::string& target, const std::string& path, std::string& fresh) {
    std::random_device random;
    for (;;) {
        fresh = target + "." + std::to_string(random());
        const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) return fd;
        if (errno != EEXIST) fail_system("cannot write", path);
    }
}

}  // namespace

Contents read_file(const std::string& path) {
    Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) fail_system("cannot open", path);
    struct stat info{};
    if (::fstat(file.fd, &info) != 0) fail_system("cannot read", path);
    RL_CHECK(S_ISREG(info.st_mode), throw_runtime, "program: '%s' is not a regular file", path.c_str());
    auto bytes = std::make_shared<Bytes>();
    bytes->mapped = true;
    if (info.st_size > 0) {
        // Map private pages, so that writes of a program to its state do not change the file.
        void* data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE,
                            file.fd, 0);
        if (data == MAP_FAILED) fail_system("cannot map", path);
        bytes->data = static_cast<char*>(data);
        bytes->size = static_cast<size_t>(info.st_size);
    }
    return read(bytes);
}

Contents read_bytes(const std::string& text) {
    auto bytes = std::make_shared<Bytes>();
    bytes->data = new char[std::max<size_t>(text.size(), 1)];
    bytes->size = text.size();
    std::memcpy(bytes->data, text.data(), text.size());
    return read(bytes);
}

std::string write_bytes(const Graph& graph, TensorList constants) {
    Layout layout = lay_out(graph, constants);
    std::string out = std::move(layout.head);
    for (const auto& [data, size] : layout.parts) out.append(static_cast<const char*>(data), size);
    return out;
}

void write_file(const Graph& graph, TensorList constants, const std::string& path) {
    const Layout layout = lay_out(graph, constants);
    // A new file is written first and then renamed. So a program that uses the mapped old file can continue, and a
    // failure leaves the old file intact.
    const std::string target = replaceable(path);
    std::string fresh;
    const Descriptor file{create_beside(target, path, fresh)};
    try {
        write_all(file.fd, layout.head.data(), layout.head.size(), path);
        for (const auto& [data, size] : layout.parts) write_all(file.fd, data, size, path);
        if (::rename(fresh.c_str(), target.c_str()) != 0) fail_system("cannot write", path);
    } catch (...) {
        ::unlink(fresh.c_str());
        throw;
    }
}

}  // namespace rushlight::graph
