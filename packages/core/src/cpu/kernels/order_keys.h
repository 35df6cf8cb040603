// Sort keys: integers with the same order as the elements, which are sorted together with the elements' indices.
// Included by kernel files only: Note [Kernels compiled twice].
#pragma once

#include <type_traits>

#include "cpu/kernels/sort_items.h"
#include "ops/functors/order.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {

using namespace functors;

// Returns whether several elements share the key, which does not preserve the sign of a zero or the bits of a NaN.
// element_of_key returns the element of any other key.
template <class T>
RL_INLINE bool is_shared(KeyOf<T> key) {
    if constexpr (kInfinityBits<T> == 0) return false;
    else
        return key == static_cast<KeyOf<T>>(KeyOf<T>(1) << (8 * sizeof(T) - 1)) ||
               key == static_cast<KeyOf<T>>(~KeyOf<T>(0));
}
template <class T>
RL_INLINE T element_of_key(KeyOf<T> key) {
    constexpr KeyOf<T> kSign = static_cast<KeyOf<T>>(KeyOf<T>(1) << (8 * sizeof(T) - 1));
    KeyOf<T> bits = key;
    if constexpr (kInfinityBits<T> != 0) bits = static_cast<KeyOf<T>>(key & kSign ? key ^ kSign : ~key);
    else if constexpr (std::is_signed_v<T>) bits = static_cast<KeyOf<T>>(key ^ kSign);
    return __builtin_bit_cast(T, bits);
}

// --- the items that are sorted: a key and the index of the element ---

// For keys of up to four bytes, one integer holds both the key and the index, so all items differ.
constexpr int64_t kLowBits = 0xffffffff;
struct Wide {
    uint64_t key;
    int64_t number;
};
// Returns the item of element `i`. `flip` has all bits set if the order is reversed.
template <class Item, class T>
RL_INLINE Item item_of(T value, KeyOf<T> flip, int64_t i) {
    const auto key = static_cast<KeyOf<T>>(key_of(value) ^ flip);
    if constexpr (std::is_same_v<Item, Wide>) return {uint64_t{key}, i};
    else
        return static_cast<int64_t>(uint64_t{static_cast<uint32_t>(key) ^ 0x80000000u} << 32 |
                                    static_cast<uint64_t>(i));
}

RL_INLINE bool operator<(const Wide& a, const Wide& b) {
    return a.key < b.key || (a.key == b.key && a.number < b.number);
}

RL_INLINE uint64_t key_bits(int64_t item) { return static_cast<uint64_t>(item) >> 32 ^ 0x80000000u; }
RL_INLINE uint64_t key_bits(const Wide& item) { return item.key; }
RL_INLINE int64_t number_of(int64_t item) { return item & kLowBits; }
RL_INLINE int64_t number_of(const Wide& item) { return item.number; }

// --- wide items ---

// Sorts runs of a few items by insertion, and merges the runs. Returns `from` or `to`, whichever holds the sorted
// items.
static Wide* sort_wide(Wide* from, Wide* to, int64_t n) {
    constexpr int64_t kRun = 16;
    for (int64_t begin = 0; begin < n; begin += kRun) {
        const int64_t end = begin + kRun < n ? begin + kRun : n;
        for (int64_t i = begin + 1; i < end; ++i) {
            const Wide item = from[i];
            int64_t at = i;
            for (; at > begin && item < from[at - 1]; --at) from[at] = from[at - 1];
            from[at] = item;
        }
    }
    for (int64_t run = kRun; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            const int64_t middle = begin + run < n ? begin + run : n,
                          end = begin + 2 * run < n ? begin + 2 * run : n;
            int64_t a = begin, b = middle;
            for (int64_t i = begin; i < end; ++i) {
                const bool second = a == middle || (b < end && from[b] < from[a]);
                to[i] = from[second ? b++ : a++];
            }
        }
        Wide* const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

// Moves the first `k` items to the front of `from`, in any order, and returns `from`. `to` is scratch memory of the
// same size.
static Wide* select_wide(Wide* from, Wide* to, int64_t n, int64_t k) {
    // Invariant: items that are known to be among the first k are at the front. The other items are partitioned around
    // the median of three of them.
    int64_t done = 0;
    while (n > 32 && k > 0 && k < n) {
        const Wide *x = from + done, *a = x, *b = x + n / 2, *c = x + n - 1;
        const Wide pivot = *a < *b ? (*b < *c ? *b : *a < *c ? *c : *a) : (*a < *c ? *a : *b < *c ? *c : *b);
        int64_t low = 0, high = n;
        for (int64_t i = 0; i < n; ++i) {
            const bool below = x[i] < pivot;
            to[done + (below ? low : high - 1)] = x[i];
            low += below;
            high -= !below;
        }
        for (int64_t i = 0; i < n; ++i) from[done + i] = to[done + i];
        if (low >= k) {
            n = low;
        } else {
            // None of the remaining items is smaller than the pivot, so the pivot is the next in order.
            for (int64_t i = done + low; i < done + n; ++i)
                if (!(from[i] < pivot) && !(pivot < from[i])) {
                    from[i] = from[done + low];
                    from[done + low] = pivot;
                    break;
                }
            done += low + 1;
            n -= low + 1;
            k -= low + 1;
        }
    }
    if (k <= 0 || k >= n) return from;
    Wide* const few = sort_wide(from + done, to + done, n);
    if (few != from + done)
        for (int64_t i = 0; i < n; ++i) from[done + i] = few[i];
    return from;
}

// --- memory ---

constexpr int64_t kSlack = 8;  // number of items behind the last that vector stores may write

template <class T>
bool is_narrow(int64_t n) {
    return sizeof(T) <= 4 && n <= kLowBits;
}

// Calls f(items) with memory for 2 * (n + kSlack) items.
template <class T, class F>
RL_INLINE void with_items(void* memory, int64_t n, F f) {
    if constexpr (sizeof(T) <= 4) {
        if (is_narrow<T>(n)) return f(static_cast<int64_t*>(memory));
    }
    f(static_cast<Wide*>(memory));
}
template <class T>
RL_INLINE int64_t bytes_of_items(int64_t n) {
    return 2 * (n + kSlack) * static_cast<int64_t>(is_narrow<T>(n) ? sizeof(int64_t) : sizeof(Wide));
}

// --- sorting and selecting items of either type ---

RL_INLINE int64_t* sort_all(int64_t* items, int64_t* spare, int64_t n) {
    sort_items(items, n, spare);
    return items;
}
RL_INLINE Wide* sort_all(Wide* items, Wide* spare, int64_t n) { return sort_wide(items, spare, n); }
// Moves the first `k` items to the front, in any order.
RL_INLINE int64_t* choose_first(int64_t* items, int64_t* spare, int64_t n, int64_t k) {
    select_items(items, n, k, spare);
    return items;
}
RL_INLINE Wide* choose_first(Wide* items, Wide* spare, int64_t n, int64_t k) {
    return select_wide(items, spare, n, k);
}

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
