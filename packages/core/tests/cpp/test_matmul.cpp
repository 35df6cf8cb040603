// sources: src/cpu/matmul.cpp src/cpu/contiguous.cpp src/cpu/capability.cpp src/cpu/kernels/gemm.cpp
// sources: src/cpu/kernels/cast.cpp src/cpu/kernels/contiguous.cpp src/runtime/caller_locks.cpp src/runtime/parallel.cpp src/runtime/limits.cpp
// sources: src/runtime/error.cpp src/tensor/dtype.cpp
// options: -DRUSHLIGHT_CPU=avx2 -DRUSHLIGHT_HAVE_AVX2=1

// Matrix products of shapes and layouts for which different algorithms are chosen.
#include "cpu/matmul.h"

#include <array>
#include <cmath>
#include <vector>

#include "arrays.h"
#include "check.h"
#include "cpu/gemm.h"

using namespace rushlight;
using namespace check;

namespace {

/// Returns an (m, n) matrix whose columns are adjacent, whose rows are adjacent, or neither.
template <class T>
Array<T> matrix(int64_t m, int64_t n, int layout) {
    if (layout == 0) return random<T>({m, n});
    if (layout == 1) return random<T>({n, m}).transposed(0, 1);
    return random<T>({n, 1, m}).transposed(0, 2).transposed(1, 2);
}

template <class T>
bool is_product(const Array<T>& out, const Array<T>& a, const Array<T>& b, auto&& addend, double alpha) {
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
    for (int64_t i = 0; i < out.size(0); ++i) {
        for (int64_t j = 0; j < out.size(1); ++j) {
            double sum = 0, magnitude = 1;
            for (int64_t k = 0; k < a.size(1); ++k) {
                sum += static_cast<double>(a(i, k)) * b(k, j);
                magnitude += std::abs(static_cast<double>(a(i, k)) * b(k, j));
            }
            const double expected = alpha * sum + addend(i, j);
            if (!(std::abs(out(i, j) - expected) <= tolerance * magnitude)) return false;
        }
    }
    return true;
}

Param number(int64_t value) { return {Param::Kind::Int, 0, {value}}; }

const double kNoAddend = 0;
auto nothing = [](int64_t, int64_t) { return kNoAddend; };

// Packs b once for several products.
void check_packed_before() {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {9, 70, 33}, {32, 96, 700}, {300, 25, 400}, {4, 50, 0}}) {
        for (int layout = 0; layout < 2; ++layout) {
            const Array<float> b = matrix<float>(k, n, layout);
            const View view = b.view();
            cpu::Gemm<float> g{
                m, n, k, nullptr, k, 1, view.as<float>(), view.stride(0), view.stride(1), nullptr,
                n, 1, 0, nullptr, 0, 0};
            const cpu::GemmKernels& kernels = cpu::gemm_kernels();
            std::vector<float> packed(static_cast<size_t>(kernels.packed_size_f32(g)));
            std::vector<float> memory(static_cast<size_t>(kernels.scratch_f32(g)));
            kernels.pack_f32(g, packed.data());
            g.b = nullptr;
            for (int64_t rows : {m, (m + 1) / 2}) {
                const Array<float> a = matrix<float>(rows, k, 0);
                Array<float> out = random<float>({rows, n});
                g.m = rows;
                g.a = a.view().as<float>();
                g.c = out.view().as<float>();
                kernels.serial_packed_f32(g, packed.data(), memory.data());
                CHECK(is_product(out, a, b, nothing, 1));
            }
        }
    }
}

template <class T>
void check_shapes() {
    const int64_t sizes[][3] = {{1, 1, 1},      {2, 3, 0},     {8, 8, 8},      {5, 17, 33},   {1, 40, 700},
                                {2, 600, 9},    {3, 50, 2100}, {13, 31, 90},   {40, 5, 100},  {70, 1, 64},
                                {33, 65, 400},  {100, 90, 30}, {9, 1030, 520}, {350, 40, 20}, {16, 20, 600},
                                {26, 13, 1100}, {64, 37, 300}};
    for (const auto& [m, n, k] : sizes) {
        for (int layout = 0; layout < 4; ++layout) {
            const Array<T> a = matrix<T>(m, k, layout % 2), b = matrix<T>(k, n, layout / 2);
            Array<T> out = random<T>({m, n});
            Context ctx;
            cpu::mm(ctx, out.view(), a.view(), b.view());
            CHECK(is_product(out, a, b, nothing, 1));
        }
    }
}

}  // namespace

TEST(float_products) { check_shapes<float>(); }
TEST(double_products) { check_shapes<double>(); }
TEST(columns_may_be_packed_before) { check_packed_before(); }

TEST(addends_broadcast_and_may_be_the_output) {
    for (int64_t n : {3, 40}) {
        const Array<float> a = random<float>({20, 30}), b = random<float>({30, n});
        const Array<float> row = random<float>({n}), column = random<float>({20, 1}),
                           full = random<float>({n, 20}).transposed(0, 1);
        Array<float> out({20, n});
        Context ctx;
        cpu::addmm(ctx, out.view(), row.view(), a.view(), b.view(), number(2), number(3));
        CHECK(is_product(out, a, b, [&](int64_t, int64_t j) { return 2 * row(j); }, 3));
        cpu::addmm(ctx, out.view(), column.view(), a.view(), b.view(), number(2), number(3));
        CHECK(is_product(out, a, b, [&](int64_t i, int64_t) { return 2 * column(i, 0); }, 3));
        cpu::addmm(ctx, out.view(), full.view(), a.view(), b.view(), number(-1), number(1));
        CHECK(is_product(out, a, b, [&](int64_t i, int64_t j) { return -full(i, j); }, 1));
        const Array<float> before = random<float>({20, n});
        std::copy(before.data(), before.data() + before.numel(), out.data());
        cpu::addmm(ctx, out.view(), out.view(), a.view(), b.view(), number(1), number(1));
        CHECK(is_product(out, a, b, [&](int64_t i, int64_t j) { return before(i, j); }, 1));
    }
}

TEST(an_addend_times_zero_is_not_read) {
    Array<float> input = random<float>({4}), out({5, 4});
    input(1) = std::nanf("");
    const Array<float> a = random<float>({5, 6}), b = random<float>({6, 4});
    Context ctx;
    cpu::addmm(ctx, out.view(), input.view(), a.view(), b.view(), number(0), number(1));
    CHECK(is_product(out, a, b, nothing, 1));
}

TEST(integers_wrap) {
    Array<int32_t> a({2, 3}), b({3, 2}), out({2, 2});
    for (int64_t i = 0; i < 6; ++i) {
        a.data()[i] = 1 << 20;
        b.data()[i] = static_cast<int32_t>(i) << 12;
    }
    Context ctx;
    cpu::mm(ctx, out.view(), a.view(), b.view());
    uint32_t sum = 0;
    for (int64_t k = 0; k < 3; ++k) sum += static_cast<uint32_t>(a(0, k)) * static_cast<uint32_t>(b(k, 1));
    CHECK_EQUAL(out(0, 1), static_cast<int32_t>(sum));
}

TEST(threads_change_no_bit) {
    const int64_t sizes[][3] = {{1, 3000, 500}, {6, 2000, 300}, {200, 300, 500},
                                {16, 900, 700}, {60, 700, 900}, {3000, 8, 200}};
    for (const auto& [m, n, k] : sizes) {
        for (int layout = 0; layout < 2; ++layout) {
            const Array<float> a = random<float>({m, k}), b = matrix<float>(k, n, layout);
            CHECK(same_for_all_threads([&] {
                Array<float> out({m, n});
                Context ctx;
                cpu::mm(ctx, out.view(), a.view(), b.view());
                return out;
            }));
        }
    }
}
