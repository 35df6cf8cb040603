#include "ops/direct/masking.h"

#include <algorithm>

#include "bodies/indexing.h"
#include "ops/direct/lines.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// Where the true elements of each part of a mask begin among all true ones: parts can be worked on in any order.
class Chosen {
  public:
    explicit Chosen(const Tensor& mask) : n_(mask.numel()) {
        const auto parts = static_cast<size_t>((n_ + kPart - 1) / kPart);
        begins_.resize(parts + 1);
        truth_ = mask.data<uint8_t>();
        parallel_for(0, static_cast<int64_t>(parts), 2, [&](int64_t first, int64_t last) {
            for (int64_t p = first; p < last; ++p) {
                const int64_t begin = p * kPart, end = std::min(begin + kPart, n_);
                // Bytes of 0 and 1, eight at a time, at most 255 times before they could overflow.
                int64_t count = 0, i = begin;
                while (i + 8 <= end) {
                    uint64_t sums = 0;
                    for (int k = 0; k < 255 && i + 8 <= end; ++k, i += 8) {
                        uint64_t eight;
                        __builtin_memcpy(&eight, truth_ + i, 8);
                        sums += eight;
                    }
                    for (; sums; sums >>= 8) count += static_cast<int64_t>(sums & 255);
                }
                for (; i < end; ++i) count += truth_[i];
                begins_[static_cast<size_t>(p) + 1] = count;
            }
        });
        for (size_t p = 0; p < parts; ++p) begins_[p + 1] += begins_[p];
    }
    int64_t count() const { return begins_.back(); }
    const uint8_t* truth() const { return truth_; }

    // body(begin, end, first, last): elements begin .. end-1, of which numbers first .. last-1 of the true ones.
    template <class Body>
    void each(Body body) const {
        parallel_for(0, static_cast<int64_t>(begins_.size()) - 1, 2, [&](int64_t from, int64_t to) {
            for (int64_t p = from; p < to; ++p) {
                const auto at = static_cast<size_t>(p);
                body(p * kPart, std::min((p + 1) * kPart, n_), begins_[at], begins_[at + 1]);
            }
        });
    }

  private:
    static constexpr int64_t kPart = 1 << 14;
    int64_t n_;
    const uint8_t* truth_;
    std::vector<int64_t> begins_;
};

}  // namespace

Tensor chosen_elements(const Tensor& input, const Tensor& mask) {
    const Tensor dense = row_major(mask), x = row_major(input);
    const Chosen chosen(dense);
    const int64_t count = chosen.count();
    Tensor out = make_tensor(IntList(&count, 1), input.dtype());
    auto compress = [&](auto zero) {
        using T = decltype(zero);
        const T* from = x.data<T>();
        T* to = out.data<T>();
        const uint8_t* truth = chosen.truth();
        chosen.each([=](int64_t begin, int64_t, int64_t first, int64_t last) {
            // Written in any case, counted if it is chosen: no jump to guess.
            for (int64_t i = begin, k = first; k < last; ++i) {
                to[k] = from[i];
                k += truth[i];
            }
        });
    };
    switch (itemsize(input.dtype())) {
        case 1: compress(uint8_t()); break;
        case 2: compress(uint16_t()); break;
        case 4: compress(uint32_t()); break;
        case 8: compress(uint64_t()); break;
        default: compress(std::pair<uint64_t, uint64_t>());
    }
    return out;
}

Tensor nonzero(const Tensor& input) {
    RL_CHECK(input.device().type != DeviceType::Meta, throw_not_implemented,
             "nonzero: the shape of the result depends on values, which a meta tensor does not have");
    RL_CHECK(input.device().type == DeviceType::CPU, throw_not_implemented, "nonzero: not implemented on %s",
             name(input.device()).c_str());
    const Tensor truth = row_major(input, DType::Bool);
    const Chosen chosen(truth);
    const int64_t dims = input.dim(), shape[] = {chosen.count(), dims};
    Tensor out = make_tensor(shape, DType::Int64);
    int64_t* to = out.data<int64_t>();
    if (dims == 0) return out;
    const int64_t width = input.size(-1);
    // kDims: their number, or 0 where it is not known here.
    auto run = [&]<int kDims>(std::integral_constant<int, kDims>) {
        const int64_t d = kDims ? kDims : dims;
        chosen.each([&](int64_t begin, int64_t, int64_t first, int64_t last) {
            int64_t place[kMaxDims];
            for (int64_t k = first, i = begin; k < last;) {
                int64_t rest = i;
                for (int64_t e = d - 1; e >= 0; --e) {
                    place[e] = rest % input.sizes()[e];
                    rest /= input.sizes()[e];
                }
                // To the end of the row.
                for (int64_t column = place[d - 1]; column < width && k < last; ++column, ++i) {
                    int64_t* o = to + k * d;
                    for (int64_t e = 0; e + 1 < d; ++e) o[e] = place[e];
                    o[d - 1] = column;
                    k += chosen.truth()[i];
                }
            }
        });
    };
    if (dims == 1) run(std::integral_constant<int, 1>());
    else if (dims == 2) run(std::integral_constant<int, 2>());
    else if (dims == 3) run(std::integral_constant<int, 3>());
    else run(std::integral_constant<int, 0>());
    return out;
}

}  // namespace rushlight::direct
