// Tensors between what they take from themselves: mirrored, repeated or from the other end. And the way back, which adds up.
#include <array>
#include <cstring>

#include "bodies/padding.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

constexpr const char* kOp = "pad";

// Where each place of a padded dimension is read from.
struct Extended {
    int64_t size, before, after, all;
    std::vector<int64_t> from;

    Extended(int64_t size, int64_t before, int64_t after, std::string_view mode)
        : size(size),
          before(before),
          after(after),
          all(size + before + after),
          from(static_cast<size_t>(all)) {
        for (int64_t i = 0; i < all; ++i) {
            int64_t at = i - before;
            if (mode == "reflect") at = at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
            else if (mode == "circular") at = at < 0 ? at + size : at >= size ? at - size : at;
            else at = std::clamp<int64_t>(at, 0, size - 1);
            from[static_cast<size_t>(i)] = at;
        }
    }
};

// A row-major tensor as planes of padded rows: dimensions in front of the first that is padded, those up to the last, and
// what lies behind.
class Frame {
  public:
    /// `padded` says which of the two shapes `sizes` is.
    Frame(IntList sizes, IntList pad, std::string_view mode, bool padded) {
        RL_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", throw_value,
                 "%s(mode): got '%.*s', needs 'reflect', 'replicate' or 'circular'", kOp,
                 static_cast<int>(mode.size()), mode.data());
        const size_t n = sizes.size();
        RL_CHECK(pad.size() % 2 == 0 && pad.size() <= 2 * n, throw_runtime,
                 "%s(pad): needs two numbers for each of at most %zu dimensions, got %s", kOp, n,
                 to_string(pad).c_str());
        shape_.assign(sizes.begin(), sizes.end());
        size_t first = n, last = 0;
        for (size_t d = 0; d < n; ++d) {
            const auto [before, after] = amounts(pad, n - 1 - d);
            if (before == 0 && after == 0) continue;
            if (first == n) first = d;
            last = d + 1;
        }
        for (size_t d = 0; d < n; ++d) {
            const auto [before, after] = amounts(pad, n - 1 - d);
            RL_CHECK(before >= -kMost && before <= kMost && after >= -kMost && after <= kMost, throw_runtime,
                     "%s(pad): amounts %lld and %lld for dimension %zu, needs amounts from 0 to %lld", kOp,
                     (long long)before, (long long)after, d, (long long)kMost);
            const int64_t size = sizes[d] - (padded ? before + after : 0);
            const bool any = before != 0 || after != 0;
            const int64_t most = mode == "reflect" ? size - 1 : mode == "circular" ? size : kMost;
            RL_CHECK(
                !any || (before >= 0 && after >= 0 && before <= most && after <= most && size > 0),
                throw_runtime,
                "%s(pad): amounts %lld and %lld for dimension %zu of size %lld in mode '%.*s', needs amounts from "
                "0 to %lld",
                kOp, (long long)before, (long long)after, d, (long long)size, static_cast<int>(mode.size()),
                mode.data(), (long long)most);
            shape_[d] = padded ? size : size + before + after;
            if (d < first) planes_ *= size;
            else if (d >= last) inner_ *= size;
            else dims_.push_back({size, any ? before : 0, any ? after : 0, any});
        }
        if (dims_.empty()) dims_.push_back({1, 0, 0, false});
    }

    /// The other shape.
    const std::vector<int64_t>& shape() const { return shape_; }
    int64_t planes() const { return planes_; }
    int64_t inner() const { return inner_; }
    /// Elements of a plane, without and with what is around it.
    int64_t small() const { return product(false) * inner_; }
    int64_t large() const { return product(true) * inner_; }

    std::vector<Extended> tables(std::string_view mode) const {
        std::vector<Extended> made;
        for (const Dim& d : dims_)
            made.emplace_back(d.size, d.before, d.after, d.padded ? mode : "replicate");
        return made;
    }

  private:
    static constexpr int64_t kMost = int64_t{1} << 58;
    struct Dim {
        int64_t size, before, after;
        bool padded;
    };
    static std::array<int64_t, 2> amounts(IntList pad, size_t from_last) {
        const size_t at = 2 * from_last;
        return at < pad.size() ? std::array{pad[at], pad[at + 1]} : std::array<int64_t, 2>{0, 0};
    }
    int64_t product(bool with) const {
        int64_t n = 1;
        for (const Dim& d : dims_) n *= d.size + (with ? d.before + d.after : 0);
        return n;
    }

    std::vector<int64_t> shape_;
    std::vector<Dim> dims_;
    int64_t planes_ = 1, inner_ = 1;
};

// body(large, small): where each padded row begins in its plane, and the row that it is made of; in blocks of `inner`.
template <class Body>
void each_row(const std::vector<Extended>& dims, Body body) {
    const size_t outer = dims.size() - 1;
    std::vector<int64_t> at(outer, 0);
    int64_t rows = 1;
    for (size_t d = 0; d < outer; ++d) rows *= dims[d].all;
    for (int64_t row = 0; row < rows; ++row) {
        int64_t from = 0;
        for (size_t d = 0; d < outer; ++d)
            from = from * dims[d].size + dims[d].from[static_cast<size_t>(at[d])];
        body(row * dims.back().all, from * dims.back().size);
        for (size_t d = outer; d-- > 0 && ++at[d] == dims[d].all;) at[d] = 0;
    }
}

int64_t grain(int64_t plane) { return std::max<int64_t>(1, (1 << 15) / (plane + 1)); }

template <class T>
void extend(const Frame& frame, const std::vector<Extended>& dims, const T* in, T* out) {
    const Extended& last = dims.back();
    const int64_t inner = frame.inner(), small = frame.small(), large = frame.large();
    const auto count = static_cast<size_t>(last.size * inner);
    parallel_for(0, frame.planes(), grain(large), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            each_row(dims, [&](int64_t to, int64_t from) {
                const T* row = in + p * small + from * inner;
                T* line = out + p * large + to * inner;
                std::memcpy(line + last.before * inner, row, count * sizeof(T));
                const auto fill = [&](int64_t first, int64_t end_of) {
                    for (int64_t i = first; i < end_of; ++i)
                        for (int64_t k = 0; k < inner; ++k)
                            line[i * inner + k] = row[last.from[static_cast<size_t>(i)] * inner + k];
                };
                fill(0, last.before);
                fill(last.before + last.size, last.all);
            });
    });
}

template <class T>
void fold_back(const Frame& frame, const std::vector<Extended>& dims, const T* grad, T* out) {
    using C = Computed<T>;
    const Extended& last = dims.back();
    const int64_t inner = frame.inner(), small = frame.small(), large = frame.large();
    const auto add = [](T& to, const T& more) {
        to = static_cast<T>(static_cast<C>(to) + static_cast<C>(more));
    };
    parallel_for(0, frame.planes(), grain(large), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            std::fill_n(out + p * small, small, T(0));
            each_row(dims, [&](int64_t from, int64_t to) {
                T* row = out + p * small + to * inner;
                const T* line = grad + p * large + from * inner;
                const T* middle = line + last.before * inner;
                for (int64_t i = 0; i < last.size * inner; ++i) add(row[i], middle[i]);
                const auto take = [&](int64_t first, int64_t end_of) {
                    for (int64_t i = first; i < end_of; ++i)
                        for (int64_t k = 0; k < inner; ++k)
                            add(row[last.from[static_cast<size_t>(i)] * inner + k], line[i * inner + k]);
                };
                take(0, last.before);
                take(last.before + last.size, last.all);
            });
        }
    });
}

}  // namespace

Tensor _pad(const Tensor& input, IntList pad, std::string_view mode) {
    host_only(kOp, input);
    const Frame frame(input.sizes(), pad, mode, false);
    Tensor out = make_tensor(frame.shape(), input.dtype(), input.device());
    if (is_meta(input) || out.numel() == 0) return out;
    const Tensor x = row_major(input);
    const std::vector<Extended> dims = frame.tables(mode);
    with_number(kOp, input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        extend(frame, dims, static_cast<const T*>(x.impl()->data()), static_cast<T*>(out.impl()->data()));
    });
    return out;
}

Tensor _pad_backward(const Tensor& grad, IntList pad, std::string_view mode) {
    host_only(kOp, grad);
    RL_CHECK(grad.dtype() != DType::Bool, throw_type, "%s(grad): bools have no gradient", kOp);
    const Frame frame(grad.sizes(), pad, mode, true);
    Tensor out = make_tensor(frame.shape(), grad.dtype(), grad.device());
    if (is_meta(grad) || out.numel() == 0) return out;
    const Tensor g = row_major(grad);
    const std::vector<Extended> dims = frame.tables(mode);
    with_number(kOp, grad.dtype(), [&](auto zero) {
        using T = decltype(zero);
        fold_back(frame, dims, static_cast<const T*>(g.impl()->data()), static_cast<T*>(out.impl()->data()));
    });
    return out;
}

}  // namespace rushlight::direct
