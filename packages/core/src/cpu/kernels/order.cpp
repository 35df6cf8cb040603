#include "cpu/order_kernels.h"

#include "cpu/kernels/order_keys.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// --- radix sort from the least significant digit; the items are given in the order of their indices ---

// The number of bits of a digit, and the numbers of digits and of values of a digit, for a key of `kBytes`.
template <int kBytes>
inline constexpr int kDigitBits = kBytes <= 2 ? 8 : 11;
template <int kBytes>
inline constexpr int kDigits = (8 * kBytes + kDigitBits<kBytes> - 1) / kDigitBits<kBytes>;
template <int kBytes>
inline constexpr int kValues = 1 << kDigitBits<kBytes>;
// Counts of narrow items fit in 32 bits.
template <class Item>
using CountOf = std::conditional_t<std::is_same_v<Item, Wide>, uint64_t, uint32_t>;

template <int kBytes, class Item, class Count>
RL_INLINE void count_digits(Count* counts, const Item& item) {
    const uint64_t bits = key_bits(item);
    for (int d = 0; d < kDigits<kBytes>; ++d)
        ++counts[d * kValues<kBytes> + (bits >> kDigitBits<kBytes> * d & (kValues<kBytes> - 1))];
}

// Sorts items and returns `from` or `to`, whichever holds the sorted items. `counts` holds the number of
// occurrences of each value of each digit.
template <int kBytes, class Item, class Count>
Item* sort_by_digits(Item* from, Item* to, int64_t n, Count* counts) {
    for (int d = 0; d < kDigits<kBytes>; ++d) {
        Count* count = counts + d * kValues<kBytes>;
        const int shift = kDigitBits<kBytes> * d;
        const auto digit = [=](const Item& item) { return key_bits(item) >> shift & (kValues<kBytes> - 1); };
        if (static_cast<int64_t>(count[digit(from[0])]) == n) continue;  // all items have the same digit
        Count at = 0;
        for (int v = 0; v < kValues<kBytes>; ++v) {
            const Count here = count[v];
            count[v] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; ++i) to[count[digit(from[i])]++] = from[i];
        Item* const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

// --- rows ---

// Rows of at least kByDigits elements are sorted by digits, and shorter rows by comparison. Rows of more than kNear
// elements exceed the cache and are partitioned first.
constexpr int64_t kByDigits = kItems == 8 ? 1 << 11 : 1 << 9, kNear = 1 << 17;
template <class T>
int64_t bytes_for(int64_t n) {
    const int64_t counts = n < kByDigits ? 0 : kDigits<sizeof(T)> * kValues<sizeof(T)>;
    return bytes_of_items<T>(n) + static_cast<int64_t>(sizeof(uint64_t)) * counts;
}

template <int kBytes, class Item>
Item* sort_counted(Item* items, Item* spare, int64_t n, CountOf<Item>* counts) {
    __builtin_memset(counts, 0, sizeof(*counts) * kDigits<kBytes> * kValues<kBytes>);
    for (int64_t i = 0; i < n; ++i) count_digits<kBytes>(counts, items[i]);
    return sort_by_digits<kBytes>(items, spare, n, counts);
}
// Partitions the items until the parts fit in the cache, and sorts the parts one after another.
template <int kBytes>
void sort_parts(int64_t* items, int64_t* spare, int64_t n, uint32_t* counts, int depth) {
    while (n > kNear && depth-- > 0) {
        const int64_t low = part_items(items, n, pivot_of(items, n), spare);
        sort_parts<kBytes>(items, spare, low, counts, depth);
        items += low;
        n -= low;
    }
    if (n == 0) return;
    const int64_t* const sorted = sort_counted<kBytes>(items, spare, n, counts);
    if (sorted != items) __builtin_memcpy(items, sorted, static_cast<size_t>(n) * sizeof(int64_t));
}

// Returns the first k items of a row in order.
template <class T, class Item>
Item* ordered(Item* items, int64_t n, int64_t k) {
    Item* const spare = items + n + kSlack;
    if (k == n && n >= kByDigits) {
        auto* counts = reinterpret_cast<CountOf<Item>*>(spare + n + kSlack);
        if constexpr (std::is_same_v<Item, int64_t>) {
            if (n > kNear) {
                sort_parts<sizeof(T)>(items, spare, n, counts, 64);
                return items;
            }
        }
        return sort_counted<sizeof(T)>(items, spare, n, counts);
    }
    if (k < n) items = choose_first(items, spare, n, k);
    return sort_all(items, spare, k);
}

template <class T>
void first(void* values, int64_t* indices, const void* in, int64_t rows, int64_t n, int64_t k,
           bool descending, void* memory) {
    const KeyOf<T> flip = descending ? static_cast<KeyOf<T>>(~KeyOf<T>(0)) : KeyOf<T>(0);
    const T* x = static_cast<const T*>(in);
    T* value = static_cast<T*>(values);
    for (int64_t l = 0; l < rows; ++l, x += n, value += k, indices += k)
        with_items<T>(memory, n, [&](auto* items) {
            using Item = std::remove_pointer_t<decltype(items)>;
            for (int64_t i = 0; i < n; ++i) items[i] = item_of<Item>(x[i], flip, i);
            const Item* const sorted = ordered<T>(items, n, k);
            for (int64_t i = 0; i < k; ++i) {
                const int64_t at = number_of(sorted[i]);
                const auto key = static_cast<KeyOf<T>>(static_cast<KeyOf<T>>(key_bits(sorted[i])) ^ flip);
                indices[i] = at;
                // The value is computed from the key where possible, because reading elements at their original
                // positions is random access.
                value[i] = is_shared<T>(key) ? x[at] : element_of_key<T>(key);
            }
        });
}

int64_t memory(int64_t n, DType dtype) {
    switch (kItemSize[static_cast<int>(dtype)]) {
        case 1: return bytes_for<uint8_t>(n);
        case 2: return bytes_for<uint16_t>(n);
        case 4: return bytes_for<uint32_t>(n);
        default: return bytes_for<uint64_t>(n);
    }
}

constexpr OrderKernels make() {
    OrderKernels k{memory, {}};
    k.loop[static_cast<int>(DType::Bool)] = first<uint8_t>;
    each_type(RealNumbers{}, [&]<class T>(DType t) { k.loop[static_cast<int>(t)] = first<T>; });
    return k;
}

}  // namespace

const OrderKernels order_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
