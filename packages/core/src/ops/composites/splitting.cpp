// Splits into views by numbers of sections or by positions.
#include "bodies/splitting.h"
#include "ops/views.h"
#include "rushlight/batched.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/slice.h"

namespace rushlight::composites {
namespace {

int split_dim(const char* op, const Tensor& input, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "%s(input): needs at least 1 dimension, got a 0-d tensor", op);
    return wrap_dim(op, dim, input.dim());
}

std::vector<Tensor> into(const char* op, const Tensor& input, int64_t sections, int64_t dim) {
    const int d = split_dim(op, input, dim);
    RL_CHECK(sections > 0, throw_runtime, "%s(sections): must be positive, got %lld", op,
             (long long)sections);
    constexpr int64_t kMost = int64_t{1} << 24;  // more tensors would fill the memory
    RL_CHECK(sections <= kMost, throw_runtime, "%s(sections): can be at most %lld, got %lld", op,
             (long long)kMost, (long long)sections);
    const int64_t size = input.sizes()[d] / sections, larger = input.sizes()[d] % sections;
    std::vector<Tensor> pieces;
    for (int64_t i = 0, at = 0; i < sections; ++i) {
        const int64_t length = size + (i < larger ? 1 : 0);
        pieces.push_back(ops::narrow(input, d, at, length));
        at += length;
    }
    return pieces;
}

std::vector<Tensor> before(const char* op, const Tensor& input, IntList positions, int64_t dim) {
    const int d = split_dim(op, input, dim);
    std::vector<Tensor> pieces;
    int64_t start = 0;
    for (int64_t position : positions) {
        pieces.push_back(ops::slice(input, d, start, position, 1));
        start = position;
    }
    pieces.push_back(ops::slice(input, d, start, std::nullopt, 1));
    return pieces;
}

// Checks the rank for hsplit, vsplit and dsplit, and returns the dimension that they split.
int rank_checked(const char* op, const Tensor& input, int64_t least, int64_t dim) {
    RL_CHECK(input.dim() >= least, throw_runtime, "%s(input): needs at least %lld dimensions, got shape %s",
             op, (long long)least, to_string(input.sizes()).c_str());
    return static_cast<int>(dim);
}

std::vector<Tensor> equally(const char* op, const Tensor& input, int64_t sections, int dim) {
    RL_CHECK(sections > 0 && input.sizes()[dim] % sections == 0, throw_runtime,
             "%s(sections): dimension %d of size %lld cannot be split into %lld equal sections\n"
             "hint: use tensor_split() for sections of different sizes",
             op, dim, (long long)input.sizes()[dim], (long long)sections);
    return into(op, input, sections, dim);
}

int hsplit_dim(const Tensor& input) { return rank_checked("hsplit", input, 1, input.dim() == 1 ? 0 : 1); }
int vsplit_dim(const Tensor& input) { return rank_checked("vsplit", input, 2, 0); }
int dsplit_dim(const Tensor& input) { return rank_checked("dsplit", input, 3, 2); }

// Raises if there are so many tensors that they would fill the memory.
void check_pieces(const char* op, int64_t count) {
    constexpr int64_t kMost = int64_t{1} << 24;
    RL_CHECK(count <= kMost, throw_runtime, "%s: can return at most %lld tensors, but would return %lld", op,
             (long long)kMost, (long long)count);
}

}  // namespace

std::vector<Tensor> tensor_split(const Tensor& input, int64_t sections, int64_t dim) {
    return into("tensor_split", input, sections, dim);
}
std::vector<Tensor> tensor_split_indices(const Tensor& input, IntList indices, int64_t dim) {
    return before("tensor_split", input, indices, dim);
}
std::vector<Tensor> tensor_split_tensor(const Tensor& input, const Tensor& given, int64_t dim) {
    RL_CHECK(
        given.dtype() == DType::Int64 && given.dim() <= 1 && given.device().type == DeviceType::CPU,
        throw_runtime,
        "tensor_split(tensor_indices_or_sections): must be a 0-d tensor or a vector of dtype int64 on the CPU, got shape %s of dtype %s on %s",
        to_string(given.sizes()).c_str(), name(given.dtype()), name(given.device()).c_str());
    require_values("tensor_split(tensor_indices_or_sections)", given);
    const Tensor values = ops::contiguous(given);
    const auto* first = values.data<int64_t>();
    if (given.dim() == 0) return into("tensor_split", input, *first, dim);
    return before("tensor_split", input, IntList(first, static_cast<size_t>(values.numel())), dim);
}

std::vector<Tensor> hsplit(const Tensor& input, int64_t sections) {
    return equally("hsplit", input, sections, hsplit_dim(input));
}
std::vector<Tensor> hsplit_indices(const Tensor& input, IntList indices) {
    return before("hsplit", input, indices, hsplit_dim(input));
}
std::vector<Tensor> vsplit(const Tensor& input, int64_t sections) {
    return equally("vsplit", input, sections, vsplit_dim(input));
}
std::vector<Tensor> vsplit_indices(const Tensor& input, IntList indices) {
    return before("vsplit", input, indices, vsplit_dim(input));
}
std::vector<Tensor> dsplit(const Tensor& input, int64_t sections) {
    return equally("dsplit", input, sections, dsplit_dim(input));
}
std::vector<Tensor> dsplit_indices(const Tensor& input, IntList indices) {
    return before("dsplit", input, indices, dsplit_dim(input));
}

std::vector<Tensor> split(const Tensor& input, int64_t split_size, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "split(): a 0-d tensor cannot be split");
    int d = wrap_dim("split", dim, input.dim());
    int64_t size = input.sizes()[d];
    RL_CHECK(split_size > 0 || (split_size == 0 && size == 0), throw_runtime,
             "split(split_size): must be positive, got %lld", (long long)split_size);
    check_pieces("split", split_size ? size / split_size : 1);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    do {
        int64_t length = std::min(split_size, size - at);
        pieces.push_back(ops::narrow(input, d, at, length));
        at += length;
    } while (at < size);
    return pieces;
}

std::vector<Tensor> split_sizes(const Tensor& input, IntList sizes, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_runtime, "split(): a 0-d tensor cannot be split");
    int d = wrap_dim("split", dim, input.dim());
    int64_t total = 0;
    for (int64_t s : sizes) {
        RL_CHECK(s >= 0, throw_runtime, "split(split_size): sizes must not be negative, got %s",
                 to_string(sizes).c_str());
        RL_CHECK(!__builtin_add_overflow(total, s, &total), throw_runtime,
                 "split(split_size): the sum of %s overflows a 64-bit integer", to_string(sizes).c_str());
    }
    RL_CHECK(total == input.sizes()[d], throw_runtime,
             "split(split_size): the sum of %s is %lld, but must be the size of dimension %d, %lld",
             to_string(sizes).c_str(), (long long)total, d, (long long)input.sizes()[d]);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (int64_t s : sizes) {
        pieces.push_back(ops::narrow(input, d, at, s));
        at += s;
    }
    return pieces;
}

std::vector<Tensor> chunk(const Tensor& input, int64_t chunks, int64_t dim) {
    RL_CHECK(chunks > 0, throw_runtime, "chunk(chunks): must be positive, got %lld", (long long)chunks);
    RL_CHECK(input.dim() > 0, throw_runtime, "chunk(): a 0-d tensor cannot be split");
    int64_t size = input.sizes()[wrap_dim("chunk", dim, input.dim())];
    check_pieces("chunk", std::min(chunks, size ? size : chunks));
    if (size == 0) {
        std::vector<Tensor> pieces;
        for (int64_t i = 0; i < chunks; ++i) pieces.push_back(ops::narrow(input, dim, 0, 0));
        return pieces;
    }
    return split(input, (size - 1) / chunks + 1, dim);
}

std::vector<Tensor> unbind(const Tensor& input, int64_t dim) {
    RL_CHECK(input.dim() > 0, throw_index, "unbind(): a 0-d tensor has no slices");
    int d = wrap_dim("unbind", dim, input.dim());
    check_pieces("unbind", input.sizes()[d]);
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < input.sizes()[d]; ++i) slices.push_back(ops::select(input, d, i));
    return slices;
}

}  // namespace rushlight::composites
