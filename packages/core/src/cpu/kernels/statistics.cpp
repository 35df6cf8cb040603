#include "cpu/statistics_kernels.h"

#include "cpu/kernels/order_keys.h"
#include "ops/element_types.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

// Returns the index of the element at a rank. NaN is the largest element. Equal elements are ranked as in a stable
// sort.
template <class Item>
int64_t find_rank(Item* items, Item* spare, int64_t n, int64_t rank) {
    items = choose_first(items, spare, n, rank + 1);
    Item last = items[0];
    for (int64_t i = 1; i <= rank; ++i)
        if (last < items[i]) last = items[i];
    return number_of(last);
}

// Returns the index of the last element with the most frequent value among the first `known` items in order. Among
// equally frequent values, the smallest is selected.
template <class Item>
int64_t find_mode(Item* items, Item* spare, int64_t n, int64_t known) {
    if (known == 0) return 0;
    items = sort_all(items, spare, n);
    int64_t most = 0, found = 0;
    for (int64_t i = 0, run; i < known; i += run) {
        for (run = 1; i + run < known && key_bits(items[i + run]) == key_bits(items[i]);) ++run;
        if (run > most) {
            most = run;
            found = i + run - 1;
        }
    }
    return number_of(items[found]);
}

template <class T>
void choose(void* values, int64_t* indices, const void* in, int64_t rows, int64_t n, Rank rank, int64_t k,
            void* memory) {
    const T* x = static_cast<const T*>(in);
    T* value = static_cast<T*>(values);
    for (int64_t l = 0; l < rows; ++l, x += n)
        with_items<T>(memory, n, [&](auto* items) {
            using Item = std::remove_pointer_t<decltype(items)>;
            int64_t known = n;  // number of elements that are not NaN
            for (int64_t i = 0; i < n; ++i) {
                items[i] = item_of<Item>(x[i], KeyOf<T>(0), i);
                if constexpr (kInfinityBits<T> != 0)
                    known -= key_of(x[i]) == static_cast<KeyOf<T>>(~KeyOf<T>(0));
            }
            Item* const spare = items + n + kSlack;
            int64_t at = 0;
            switch (rank) {
                case Rank::Kth: at = find_rank(items, spare, n, k); break;
                case Rank::Median: at = find_rank(items, spare, n, known < n ? known : (n - 1) / 2); break;
                case Rank::NanMedian: at = find_rank(items, spare, n, known > 0 ? (known - 1) / 2 : 0); break;
                case Rank::Mode: at = find_mode(items, spare, n, known); break;
            }
            indices[l] = at;
            value[l] = x[at];
        });
}

int64_t memory(int64_t n, DType dtype) {
    switch (kItemSize[static_cast<int>(dtype)]) {
        case 8: return bytes_of_items<uint64_t>(n);
        default: return bytes_of_items<uint32_t>(n);
    }
}

constexpr StatisticsKernels make() {
    StatisticsKernels k{memory, {}};
    k.loop[static_cast<int>(DType::Bool)] = choose<uint8_t>;
    each_type(RealNumbers{}, [&]<class T>(DType t) { k.loop[static_cast<int>(t)] = choose<T>; });
    return k;
}

}  // namespace

const StatisticsKernels statistics_kernels_table = make();

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
