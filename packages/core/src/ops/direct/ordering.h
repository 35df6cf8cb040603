// Which elements of a line come first: by their keys, unsigned integers that rise with the elements. Equal elements keep their
// order; NaN is largest.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "ops/direct/lines.h"

namespace rushlight::direct {

template <size_t size> struct UnsignedOf;
template <> struct UnsignedOf<1> {
    using type = uint8_t;
};
template <> struct UnsignedOf<2> {
    using type = uint16_t;
};
template <> struct UnsignedOf<4> {
    using type = uint32_t;
};
template <> struct UnsignedOf<8> {
    using type = uint64_t;
};
template <class T>
using KeyOf = typename UnsignedOf<sizeof(T)>::type;

template <class T>
inline constexpr KeyOf<T> kInfinityBits = 0;
template <>
inline constexpr uint16_t kInfinityBits<Half> = 0x7c00;
template <>
inline constexpr uint16_t kInfinityBits<BFloat16> = 0x7f80;
template <>
inline constexpr uint32_t kInfinityBits<float> = 0x7f800000;
template <>
inline constexpr uint64_t kInfinityBits<double> = 0x7ff0000000000000;

template <class T>
KeyOf<T> key_of(T value) {
    using Key = KeyOf<T>;
    constexpr Key kSign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
    const Key bits = std::bit_cast<Key>(value);
    if constexpr (kInfinityBits<T> != 0) {
        const Key magnitude = static_cast<Key>(bits & ~kSign);
        if (magnitude > kInfinityBits<T>) return static_cast<Key>(~Key(0));
        if (magnitude == 0) return kSign;
        return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<Key>(bits ^ kSign);
    } else {
        return bits;
    }
}

/// The order of the elements of lines of up to n elements. One for each thread: it holds the memory to sort in.
template <class T>
class Ordering {
  public:
    explicit Ordering(int64_t n)
        : packed_(sizeof(T) <= 4 && n <= int64_t{UINT32_MAX}),
          narrow_(packed_ ? static_cast<size_t>(2 * n) : 0),
          wide_(packed_ ? 0 : static_cast<size_t>(2 * n)) {}

    /// Calls put(i, index) with the index of the i-th element in order, for the first k of the n at x.
    template <class Put>
    void first(const T* x, int64_t n, int64_t k, bool descending, Put put) {
        if (packed_) {
            // The key above the index: a single integer to sort.
            uint64_t* items = narrow_.data();
            const uint64_t turned = descending ? static_cast<KeyOf<T>>(~KeyOf<T>(0)) : 0;
            for (int64_t i = 0; i < n; ++i)
                items[i] = (uint64_t{key_of(x[i])} ^ turned) << 32 | static_cast<uint64_t>(i);
            items = sorted(items, items + n, n, k, 32);
            for (int64_t i = 0; i < k; ++i) put(i, static_cast<int64_t>(items[i] & UINT32_MAX));
        } else {
            Item* items = wide_.data();
            const KeyOf<T> turned = descending ? static_cast<KeyOf<T>>(~KeyOf<T>(0)) : KeyOf<T>(0);
            for (int64_t i = 0; i < n; ++i)
                items[i] = {uint64_t{static_cast<KeyOf<T>>(key_of(x[i]) ^ turned)}, i};
            items = sorted(items, items + n, n, k, 0);
            for (int64_t i = 0; i < k; ++i) put(i, items[i].index);
        }
    }

  private:
    struct Item {
        uint64_t key;
        int64_t index;
        bool operator<(const Item& other) const {
            return key < other.key || (key == other.key && index < other.index);
        }
    };
    static uint64_t key(uint64_t item) { return item; }
    static uint64_t key(const Item& item) { return item.key; }

    // The first k in order; `spare` has room for n too.
    template <class I>
    static I* sorted(I* items, I* spare, int64_t n, int64_t k, int first_bit) {
        constexpr int64_t kFew = 96;  // below, counting digits costs more than comparing
        if (k == n) {
            if (n > kFew) return by_digits(items, spare, n, first_bit);
            std::sort(items, items + n);
        } else if (k <= n / 16) {
            std::partial_sort(items, items + k, items + n);
        } else {
            std::nth_element(items, items + k, items + n);
            std::sort(items, items + k);
        }
        return items;
    }

    // Radix sort, the least significant digit first: the items stand in the order of their indices at first.
    template <class I>
    static I* by_digits(I* from, I* to, int64_t n, int first_bit) {
        constexpr int kDigits = static_cast<int>(sizeof(T));
        std::vector<int64_t> counts(kDigits * 256);
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t bits = key(from[i]) >> first_bit;
            for (int d = 0; d < kDigits; ++d) ++counts[static_cast<size_t>(d * 256) + (bits >> 8 * d & 255)];
        }
        for (int d = 0; d < kDigits; ++d) {
            int64_t* count = counts.data() + d * 256;
            const int shift = first_bit + 8 * d;
            if (count[key(from[0]) >> shift & 255] == n) continue;  // the same in all
            int64_t at = 0;
            for (int v = 0; v < 256; ++v) {
                const int64_t here = count[v];
                count[v] = at;
                at += here;
            }
            for (int64_t i = 0; i < n; ++i) to[count[key(from[i]) >> shift & 255]++] = from[i];
            std::swap(from, to);
        }
        return from;
    }
    bool packed_;
    std::vector<uint64_t> narrow_;
    std::vector<Item> wide_;
};

}  // namespace rushlight::direct
