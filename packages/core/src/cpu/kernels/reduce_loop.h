// Makes the loops of one reduction from a reducer. Included by kernel files only: Note [Kernels compiled twice].
//
// A reducer is made from the operator's parameters, and defines for elements of type T
//     Acc, Wide                        the types of partial results and of results
//     Acc start()                      the partial result of no elements
//     Acc step(Acc, T)                 adds one element; step(Acc, T, int64_t) also receives its index
//     Acc join(Acc, Acc)               combines the partial results of two runs of elements, the earlier first
//     Wide finish(Acc, int64_t n)      the result of n elements; index(Acc) returns a second result
//     kIdentity                        whether a reduction of no elements has a result
// and may have
//     step and join of vectors         for reduce_rows.h: templates that are also defined for vectors
//     Acc run(read, n, index)          the partial result of a run: read(i) returns element i, whose index is index + i
//     run_columns<kRows>(acc, x, n, index)  adds n elements, at least one, to each of kRows partial results: element i of
//                                      result l is x[i * kRows + l]
//     T four(T, T, T, T)               combines four elements before step()
//     Steps                            another reducer, whose start, step, join and run are used. Several reducers share
//                                      it, so that these functions are compiled once
//     Element                          the element type of Steps, if it is not T but has the same bits
//     kByParts                         whether the real and the imaginary parts of complex numbers are reduced independently,
//                                      by step and join of vectors
//     OfHalves                         a member of Steps: a reducer that is used instead of Steps for elements that are
//                                      stored in a half type. Its member Replaces must be Steps itself, so that OfHalves
//                                      is not used for reducers that are derived from Steps
#pragma once

#include "cpu/kernels/halves.h"
#include "cpu/kernels/pointwise_loop.h"
#include "cpu/kernels/reduce_rows.h"
#include "cpu/reduce_table.h"
#include "ops/reducers/accumulators.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

template <class T, class Stored>
struct Reader {
    const Stored* data;
    T operator()(int64_t i) const { return static_cast<T>(data[i]); }
};

// Copies `rows` rows of n elements of `size` bytes, so that they have no gaps. Rows are `row_step` bytes apart, and the
// elements of a row `step` bytes.
template <class Word>
RL_INLINE void pack_words(Word* to, const char* from, int64_t rows, int64_t row_step, int64_t n,
                          int64_t step) {
    constexpr auto size = static_cast<int64_t>(sizeof(Word));
    const auto each_row = [&](auto row) {
        for (int64_t i = 0; i < rows; ++i)
            row(to + i * n, reinterpret_cast<const Word*>(from + i * row_step));
    };
    // The compiler vectorises the loops whose step is constant.
    if (step == 2 * size)
        each_row([n](Word* __restrict y, const Word* __restrict x) {
            for (int64_t k = 0; k < n; ++k) y[k] = x[2 * k];
        });
    else if (step == 3 * size)
        each_row([n](Word* __restrict y, const Word* __restrict x) {
            for (int64_t k = 0; k < n; ++k) y[k] = x[3 * k];
        });
    else
        each_row([n, step](Word* __restrict y, const Word* x) {
            const char* element = reinterpret_cast<const char*>(x);
            for (int64_t k = 0; k < n; ++k, element += step) y[k] = *reinterpret_cast<const Word*>(element);
        });
}
struct Words2 {
    uint64_t a, b;
};
[[maybe_unused, gnu::noinline]] static void pack_rows(void* to, const char* from, int64_t rows,
                                                      int64_t row_step, int64_t n, int64_t step,
                                                      int64_t size) {
    const auto as = [&]<class Word>(Word) {
        pack_words(static_cast<Word*>(to), from, rows, row_step, n, step);
    };
    switch (size) {
        case 1: return as(uint8_t());
        case 2: return as(uint16_t());
        case 4: return as(uint32_t());
        case 8: return as(uint64_t());
        default: return as(Words2());
    }
}

template <class R, class T, class Stored>
struct ReduceLoop {
    using Acc = typename R::Acc;
    using Wide = typename R::Wide;

    static void start(char* acc, int64_t count, const Scalar* params) {
        const R r(params);
        for (int64_t i = 0; i < count; ++i) reinterpret_cast<Acc*>(acc)[i] = r.start();
    }

    [[gnu::noinline]] static void accumulate(char* bytes, const char* in, int64_t count, int64_t step,
                                             int64_t n, int64_t stride, int64_t index, const Scalar* params) {
        const R r(params);
        Acc* acc = reinterpret_cast<Acc*>(bytes);
        constexpr auto size = static_cast<int64_t>(sizeof(Stored));
        // If results overlap, as in the sums of a moving window, both strides are the size of an element.
        if (step == size && count > 1 && (stride != size || n <= count)) {
            for (int64_t c = 0; c < count; c += kColumns)
                columns(r, acc + c, in + c * size, count - c < kColumns ? count - c : kColumns, n, stride,
                        index);
            return;
        }
        if (stride != size && count > 1 && (distance(step) < distance(stride) || 2 * n <= kPacked))
            return accumulate_packed(acc, in, count, step, n, stride, index, params);
        int64_t i = 0;
        if constexpr (kByRows) {
            if (stride == size && n < Rows::kCount) {
                for (; i + Rows::kShort <= count; i += Rows::kShort)
                    Rows::short_rows(r, acc + i, in + i * step, step, n);
            } else if constexpr (Rows::kVectors) {
                if (stride == size && n <= kPart) {
                    for (; i + Rows::kL <= count; i += Rows::kL)
                        Rows::long_rows(r, acc + i, in + i * step, step, n);
                }
            }
        }
        if constexpr (kByColumns) {
            if (stride == size && n <= kShortRow) {
                constexpr int64_t kRows = kVectorBytes / size;
                alignas(64) T elements[kShortRow * kRows];
                for (; i + kRows <= count; i += kRows) {
                    transpose_rows<kRows>(elements, in + i * step, step, n);
                    r.template run_columns<kRows>(acc + i, elements, n, index);
                }
            }
        }
        if constexpr (kByParts) {
            if (stride == size && n >= reducers::kAccumulators<Acc> && n <= kPart) {
                for (; i < count; ++i)
                    acc[i] = r.join(acc[i], reduce_parts(r, reinterpret_cast<const T*>(in + i * step), n));
            }
        }
        for (; i < count; ++i) {
            const char* row = in + i * step;
            acc[i] = stride == size ? along(r, acc[i], reinterpret_cast<const Stored*>(row), n, index)
                                    : along_strided(r, acc[i], row, n, stride, index);
        }
    }

    static void join(char* acc, const char* later, int64_t count, const Scalar* params) {
        const R r(params);
        Acc* a = reinterpret_cast<Acc*>(acc);
        for (int64_t i = 0; i < count; ++i) a[i] = r.join(a[i], reinterpret_cast<const Acc*>(later)[i]);
    }

    static void finish(char* out, char* second, const char* acc, int64_t count, int64_t n,
                       const Scalar* params) {
        const R r(params);
        const Acc* a = reinterpret_cast<const Acc*>(acc);
        for (int64_t i = 0; i < count; ++i) reinterpret_cast<Wide*>(out)[i] = r.finish(a[i], n);
        if constexpr (requires { r.index(a[0]); }) {
            if (second)
                for (int64_t i = 0; i < count; ++i) reinterpret_cast<int64_t*>(second)[i] = r.index(a[i]);
        }
    }

  private:
    static constexpr int64_t kShortRow = 64;
    // Elements that are not adjacent are copied in parts of this size. Adjacent elements are processed in the same
    // parts, so that the result does not depend on the layout.
    static constexpr int64_t kPart = 2048;
    static constexpr int64_t kColumns = 256;
    // The number of elements that are copied before they are reduced, if neither the elements of a result nor the elements
    // of adjacent results are adjacent. The copy stays in the first-level cache.
    static constexpr int64_t kPacked = 16384 / static_cast<int64_t>(sizeof(Stored));
    // The type in which elements are read. A row of float16 elements is converted by convert_row().
    static constexpr bool kConverts = std::is_same_v<Stored, Half>;
    using Read = std::conditional_t<kConverts, float, Stored>;

    using Rows = ReduceRows<R, T>;
    static constexpr bool kRuns = requires(const R r, Reader<T, Read> read) { r.run(read, 0, 0); };
    static constexpr bool kByColumns =
        std::is_same_v<T, Stored> && kFillsLane<T> &&
        requires(const R r, Acc* acc, const T* x) { r.template run_columns<1>(acc, x, 0, 0); };
    static constexpr bool kByRows = Rows::kFits && std::is_same_v<T, Stored> && !kRuns;

    static constexpr bool kByParts = requires { requires R::kByParts; };

    static constexpr bool kByVectors = [] {
        if constexpr (kByRows) return Rows::kVectors;
        else return false;
    }();

    [[gnu::noinline]] static Acc part(const R& r, Acc acc, const Stored* elements, int64_t n, int64_t index) {
        Read converted[kConverts ? kPart : 1];
        const Read* adjacent = row(elements, n, converted);
        if constexpr (!kRuns && std::is_same_v<T, Read>) {
            if constexpr (Rows::kVectors) {
                if (n >= Rows::kCount) return r.join(acc, Rows::row(r, adjacent, n));
            }
        }
        if constexpr (kByParts) {
            if (n >= reducers::kAccumulators<Acc>) return r.join(acc, reduce_parts(r, adjacent, n));
        }
        return run(r, acc, Reader<T, Read>{adjacent}, n, index);
    }

    static const Read* row(const Stored* elements, int64_t n, Read* converted) {
        if constexpr (kConverts) {
            convert_row(converted, elements, n);
            return converted;
        } else {
            return elements;
        }
    }

    static Acc along(const R& r, Acc acc, const Stored* elements, int64_t n, int64_t index) {
        for (int64_t i = 0; i < n; i += kPart)
            acc = part(r, acc, elements + i, n - i < kPart ? n - i : kPart, index + i);
        return acc;
    }

    static Acc along_strided(const R& r, Acc acc, const char* elements, int64_t n, int64_t stride,
                             int64_t index) {
        Stored copy[kPart];
        for (int64_t i = 0; i < n; i += kPart) {
            const int64_t count = n - i < kPart ? n - i : kPart;
            pack_rows(copy, elements + i * stride, 1, 0, count, stride, sizeof(Stored));
            acc = part(r, acc, copy, count, index + i);
        }
        return acc;
    }

    static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

    // Copies blocks of elements so that they are adjacent along the dimension with the smaller stride, and accumulates
    // them.
    [[gnu::noinline]] static void accumulate_packed(Acc* acc, const char* in, int64_t count, int64_t step,
                                                    int64_t n, int64_t stride, int64_t index,
                                                    const Scalar* params) {
        const R r(params);
        constexpr auto size = static_cast<int64_t>(sizeof(Stored));
        alignas(64) char elements[kPacked * size];
        if (distance(step) < distance(stride)) {
            for (int64_t c = 0; c < count; c += kColumns) {
                const int64_t width = count - c < kColumns ? count - c : kColumns, rows = kPacked / width;
                for (int64_t i = 0; i < n; i += rows) {
                    const int64_t height = n - i < rows ? n - i : rows;
                    pack_rows(elements, in + c * step + i * stride, height, stride, width, step, size);
                    columns(r, acc + c, elements, width, height, width * size, index + i);
                }
            }
            return;
        }
        const int64_t rows = kPacked / n;
        for (int64_t i = 0; i < count; i += rows) {
            const int64_t height = count - i < rows ? count - i : rows;
            pack_rows(elements, in + i * step, height, step, n, stride, size);
            accumulate(reinterpret_cast<char*>(acc + i), elements, height, n * size, n, size, index, params);
        }
    }

    template <class Read>
    static Acc run(const R& r, Acc acc, Read read, int64_t n, int64_t index) {
        if constexpr (requires { r.run(read, n, index); }) {
            return r.join(acc, r.run(read, n, index));
        } else {
            return reducers::with_accumulators(
                n, acc, [&] { return r.start(); }, [&](Acc a, int64_t i) { return r.step(a, read(i)); },
                [&](Acc a, Acc b) { return r.join(a, b); });
        }
    }

    // Accumulates rows of elements, in which adjacent elements belong to adjacent results. Four rows are processed at a
    // time.
    [[gnu::noinline]] static void columns(const R& r, Acc* acc, const char* in, int64_t count, int64_t n,
                                          int64_t stride, int64_t index) {
        if constexpr (!requires { r.step(acc[0], T(), index); }) {
            // Several short rows without gaps between them are processed together, as one longer row.
            int64_t together = kShortRow / count;
            if (together > 1 && n >= 2 * together && stride == count * static_cast<int64_t>(sizeof(Stored))) {
                alignas(64) Acc side[kShortRow];
                for (int64_t k = 0; k < together * count; ++k) side[k] = r.start();
                columns(r, side, in, together * count, n / together, stride * together, index);
                for (int64_t k = 0; k < together; ++k)
                    for (int64_t c = 0; c < count; ++c) acc[c] = r.join(acc[c], side[k * count + c]);
                int64_t done = n / together * together;
                in += done * stride;
                n -= done;
            }
        }
        Read converted[4][kConverts ? kColumns : 1];
        auto row_at = [&](int64_t i, int slot) {
            return row(reinterpret_cast<const Stored*>(in + i * stride), count, converted[slot]);
        };
        int64_t i = 0;
        if constexpr (requires { r.step(acc[0], T(), index); }) {
            for (; i < n; ++i) {
                const Read* x = row_at(i, 0);
                for (int64_t c = 0; c < count; ++c) acc[c] = r.step(acc[c], static_cast<T>(x[c]), index + i);
            }
        } else {
            for (; i + 4 <= n; i += 4) {
                const Read *x0 = row_at(i, 0), *x1 = row_at(i + 1, 1), *x2 = row_at(i + 2, 2),
                           *x3 = row_at(i + 3, 3);
                int64_t c = 0;
                if constexpr (requires { r.four(T(), T(), T(), T()); }) {
                    if (fours(r, acc, x0, x1, x2, x3, count)) continue;
                } else if constexpr (kByVectors) {
                    c = Rows::template add_to_columns<4>(r, acc, {x0, x1, x2, x3}, count);
                }
#pragma GCC ivdep
                for (; c < count; ++c) {
                    Acc a = r.step(r.step(acc[c], static_cast<T>(x0[c])), static_cast<T>(x1[c]));
                    acc[c] = r.step(r.step(a, static_cast<T>(x2[c])), static_cast<T>(x3[c]));
                }
            }
            if constexpr (kByVectors) {
                if (i + 2 <= n && count % Rows::kL == 0) {
                    Rows::template add_to_columns<2>(r, acc, {row_at(i, 0), row_at(i + 1, 1)}, count);
                    i += 2;
                }
            }
            for (; i < n; ++i) {
                const Read* x = row_at(i, 0);
                int64_t c = 0;
                if constexpr (kByVectors) c = Rows::template add_to_columns<1>(r, acc, {x}, count);
#pragma GCC ivdep
                for (; c < count; ++c) acc[c] = r.step(acc[c], static_cast<T>(x[c]));
            }
        }
    }

    // Combines four rows before they are added to the results. Returns false and changes nothing if a value is not finite.
    static bool fours(const R& r, Acc* acc, const Read* x0, const Read* x1, const Read* x2, const Read* x3,
                      int64_t count) {
        T four[kColumns];
        int32_t infinite = 0;
        for (int64_t c = 0; c < count; ++c) {
            four[c] = r.four(static_cast<T>(x0[c]), static_cast<T>(x1[c]), static_cast<T>(x2[c]),
                             static_cast<T>(x3[c]));
            infinite |= four[c] - four[c] != 0;
        }
        if (infinite) return false;
        for (int64_t c = 0; c < count; ++c) acc[c] = r.step(acc[c], four[c]);
        return true;
    }
};

template <class R>
struct StepsOf {
    using type = R;
};
template <class R>
    requires requires { typename R::Steps; }
struct StepsOf<R> {
    using type = typename R::Steps;
};

template <class R, class Stored>
struct StepsOver {
    using type = typename StepsOf<R>::type;
};
template <class R, class Stored>
    requires(kIsHalf<Stored> &&
             std::is_same_v<typename StepsOf<R>::type::OfHalves::Replaces, typename StepsOf<R>::type>)
struct StepsOver<R, Stored> {
    using type = typename StepsOf<R>::type::OfHalves;
};

template <class R, class T>
struct ElementOf {
    using type = T;
};
template <class R, class T>
    requires requires { typename R::Element; }
struct ElementOf<R, T> {
    using type = typename R::Element;
};

template <class R, class T, class Stored>
constexpr ReduceLoops reduce_loops() {
    using Element = typename ElementOf<R, T>::type;
    using Read = std::conditional_t<std::is_same_v<T, Stored>, Element, Stored>;
    using Steps = ReduceLoop<typename StepsOver<R, Stored>::type, Element, Read>;
    static_assert(sizeof(typename R::Acc) <= 32 && sizeof(typename Steps::Acc) == sizeof(typename R::Acc) &&
                  sizeof(Read) == sizeof(Stored));
    return {Steps::start,
            Steps::accumulate,
            Steps::join,
            ReduceLoop<R, T, Stored>::finish,
            DTypeOf<typename R::Wide>::value,
            sizeof(typename R::Acc),
            R::kIdentity,
            requires(R r, typename R::Acc a) { r.index(a); }};
}

template <template <class> class R, class... T>
constexpr ReduceTable reducers(Types<T...>) {
    ReduceTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = reduce_loops<R<T>, T, T>()), ...);
    if (table.loop[static_cast<int>(DType::Float32)].start) {
        table.loop[static_cast<int>(DType::Float16)] = reduce_loops<R<float>, float, Half>();
        table.loop[static_cast<int>(DType::BFloat16)] = reduce_loops<R<float>, float, BFloat16>();
    }
    return table;
}

}  // namespace
}  // namespace rushlight::cpu::RUSHLIGHT_CPU
