// sources: src/cpu/norm.cpp src/cpu/pool.cpp src/cpu/softmax.cpp src/cpu/loss.cpp src/cpu/embedding.cpp
// sources: src/cpu/attention.cpp src/cpu/contiguous.cpp src/cpu/capability.cpp src/cpu/kernels/batch_norm.cpp
// sources: src/cpu/kernels/row_norm.cpp src/cpu/kernels/pool.cpp src/cpu/kernels/softmax.cpp
// sources: src/cpu/kernels/group_norm_channels.cpp src/cpu/kernels/pool_channels.cpp
// sources: src/cpu/kernels/loss.cpp src/cpu/kernels/embedding.cpp src/cpu/kernels/attention.cpp
// sources: src/cpu/kernels/gemm.cpp src/cpu/kernels/cast.cpp src/cpu/kernels/contiguous.cpp
// sources: src/cpu/kernels/positions.cpp src/runtime/caller_locks.cpp src/runtime/parallel.cpp
// sources: src/runtime/limits.cpp src/runtime/error.cpp src/tensor/dtype.cpp
// options: -DRUSHLIGHT_CPU=avx2 -DRUSHLIGHT_HAVE_AVX2=1

// Properties of kernels that the generated tests of operators do not check: equal bits for any number of threads, and edge
// cases.
#include <cmath>
#include <limits>

#include "arrays.h"
#include "check.h"
#include "cpu/attention.h"
#include "cpu/embedding.h"
#include "cpu/loss.h"
#include "cpu/norm.h"
#include "cpu/pool.h"
#include "cpu/softmax.h"

using namespace rushlight;
using namespace check;

namespace {

const float kInfinity = std::numeric_limits<float>::infinity();

Array<int64_t> indices(int64_t count, int64_t below) {
    Array<int64_t> a({count});
    for (int64_t i = 0; i < count; ++i)
        a(i) = static_cast<int64_t>(generator() % static_cast<uint32_t>(below));
    return a;
}

}  // namespace

TEST(batch_norm_sums_in_one_order) {
    const Array<float> x = random<float>({6, 10, 40, 40}), g = random<float>({6, 10, 40, 40});
    for (bool rows : {false, true}) {
        const Array<float> in = rows ? random<float>({600, 200}) : x;
        const int64_t channels = in.size(1);
        CHECK(same_for_all_threads([&] {
            Array<float> out({in.numel()}), mean({channels}), invstd({channels});
            View y = in.view();
            y.data = out.data();
            Context ctx;
            cpu::batch_norm(ctx, y, mean.view(), invstd.view(), in.view(), none(), none(), none(), none(),
                            true, 0.1, 1e-5);
            return out;
        }));
    }
}

TEST(layer_norm_gradients_sum_in_one_order) {
    const Array<float> x = random<float>({500, 130}), g = random<float>({500, 130}), w = random<float>({130});
    const int64_t shape = 130;
    Array<float> out({500, 130}), mean({500}), rstd({500});
    Context ctx;
    cpu::layer_norm(ctx, out.view(), mean.view(), rstd.view(), x.view(), w.view(), none(), {&shape, 1}, 1e-5);
    CHECK(same_for_all_threads([&] {
        Array<float> dx({500, 130}), dw({130}), db({130});
        Context inner;
        cpu::layer_norm_backward(inner, dx.view(), dw.view(), db.view(), g.view(), x.view(), mean.view(),
                                 rstd.view(), w.view(), {&shape, 1});
        return dw;
    }));
}

TEST(large_means_do_not_spoil_variances) {
    Array<float> x = random<float>({8, 1, 30, 30});
    for (int64_t i = 0; i < x.numel(); ++i) x.data()[i] += 1000;
    Array<float> out({8, 1, 30, 30}), mean({1}), invstd({1});
    Context ctx;
    cpu::batch_norm(ctx, out.view(), mean.view(), invstd.view(), x.view(), none(), none(), none(), none(),
                    true, 0.1, 0);
    double m = 0, v = 0;
    for (int64_t i = 0; i < x.numel(); ++i) m += x.data()[i];
    m /= static_cast<double>(x.numel());
    for (int64_t i = 0; i < x.numel(); ++i) v += (x.data()[i] - m) * (x.data()[i] - m);
    CHECK(std::abs(invstd(0) - 1 / std::sqrt(v / static_cast<double>(x.numel()))) < 1e-5);
}

TEST(maxima_keep_nan_and_the_first_of_equals) {
    Array<float> x({1, 1, 4, 6}), out({1, 1, 2, 3});
    Array<int64_t> at({1, 1, 2, 3});
    x(0, 0, 1, 1) = std::nanf("");
    for (int64_t j = 2; j < 4; ++j) x(0, 0, 0, j) = x(0, 0, 1, j) = -kInfinity;
    const int64_t two = 2, zero = 0, one = 1;
    Context ctx;
    cpu::max_pool2d(ctx, out.view(), at.view(), x.view(), {&two, 1}, {nullptr, 0}, {&zero, 1}, {&one, 1},
                    false);
    CHECK(std::isnan(out(0, 0, 0, 0)));
    CHECK_EQUAL(at(0, 0, 0, 0), 7);
    CHECK_EQUAL(out(0, 0, 0, 1), -kInfinity);
    CHECK_EQUAL(at(0, 0, 0, 1), 2);
    CHECK_EQUAL(at(0, 0, 1, 2), 16);
}

// Returns an array of the sizes (n, c, h, w) in the channels-last layout.
template <class T>
Array<T> channels_last(int64_t n, int64_t c, int64_t h, int64_t w) {
    return Array<T>({n, h, w, c}).transposed(1, 3).transposed(2, 3);
}
template <class T>
Array<T> copied_channels_last(const Array<T>& a) {
    const Array<T> b = channels_last<T>(a.size(0), a.size(1), a.size(2), a.size(3));
    for (int64_t n = 0; n < a.size(0); ++n)
        for (int64_t c = 0; c < a.size(1); ++c)
            for (int64_t i = 0; i < a.size(2); ++i)
                for (int64_t j = 0; j < a.size(3); ++j) b(n, c, i, j) = a(n, c, i, j);
    return b;
}
template <class T>
bool near(const Array<T>& a, const Array<T>& b) {
    double most = 0;
    for (int64_t n = 0; n < a.size(0); ++n)
        for (int64_t c = 0; c < a.size(1); ++c)
            for (int64_t i = 0; i < a.size(2); ++i)
                for (int64_t j = 0; j < a.size(3); ++j)
                    most = std::max(most, std::abs(static_cast<double>(a(n, c, i, j) - b(n, c, i, j))));
    return most < 1e-4;
}

TEST(channels_last_kernels_equal_row_major_kernels) {
    const int64_t three = 3, two = 2, one = 1, two_by_three[] = {2, 3};
    for (int64_t channels : {3, 8, 20, 70}) {
        const Array<float> x = random<float>({2, channels, 7, 9}), g = random<float>({2, channels, 4, 5}),
                           w = random<float>({channels});
        std::vector<Array<float>> results[2] = {std::vector<Array<float>>(8, x),
                                                std::vector<Array<float>>(8, x)};
        std::vector<Array<int64_t>> positions(2, Array<int64_t>({1}));
        for (int last = 0; last < 2; ++last) {
            const auto make = [&](int64_t h, int64_t width) {
                return last ? channels_last<float>(2, channels, h, width)
                            : Array<float>({2, channels, h, width});
            };
            const Array<float> in = last ? copied_channels_last(x) : x,
                               dy = last ? copied_channels_last(g) : g;
            std::vector<Array<float>>& made = results[last];
            const Array<int64_t> at =
                last ? channels_last<int64_t>(2, channels, 4, 5) : Array<int64_t>({2, channels, 4, 5});
            Context ctx;
            made[0] = make(4, 5);
            cpu::max_pool2d(ctx, made[0].view(), at.view(), in.view(), {&three, 1}, {&two, 1}, {&one, 1},
                            {&one, 1}, false);
            positions[last] = at;
            made[1] = make(7, 9);
            cpu::max_pool2d_backward(ctx, made[1].view(), dy.view(), at.view());
            made[2] = make(4, 5);
            cpu::avg_pool2d(ctx, made[2].view(), in.view(), {&three, 1}, {&two, 1}, {&one, 1}, false, false,
                            0);
            made[3] = make(7, 9);
            cpu::avg_pool2d_backward(ctx, made[3].view(), dy.view(), {&three, 1}, {&two, 1}, {&one, 1}, false,
                                     true, 0);
            made[4] = make(2, 3);
            cpu::adaptive_avg_pool2d(ctx, made[4].view(), in.view(), {two_by_three, 2});
            Array<float> mean({channels}), invstd({channels}), dw({channels}), db({channels});
            made[5] = make(7, 9);
            cpu::batch_norm(ctx, made[5].view(), mean.view(), invstd.view(), in.view(), w.view(), w.view(),
                            none(), none(), true, 0.1, 1e-5);
            made[6] = make(7, 9);
            cpu::masked_batch_norm_backward(ctx, made[6].view(), dw.view(), db.view(), in.view(),
                                            made[5].view(), in.view(), w.view(), mean.view(), invstd.view(),
                                            0, 1, true);
            Array<float> means({2, 1}), rstds({2, 1});
            made[7] = make(7, 9);
            cpu::group_norm(ctx, made[7].view(), means.view(), rstds.view(), in.view(), w.view(), w.view(), 1,
                            1e-5);
        }
        for (int i = 0; i < 8; ++i) CHECK(near(results[0][i], results[1][i]));
        CHECK(near(positions[0], positions[1]));
    }
}

TEST(softmax_of_large_numbers) {
    Array<float> x({2, 3}), out({2, 3}), log_out({2, 3});
    x(0, 0) = 1e30f, x(0, 1) = 1e30f, x(0, 2) = -1e30f;
    x(1, 0) = -kInfinity, x(1, 1) = 80000, x(1, 2) = 80001;
    Context ctx;
    cpu::softmax(ctx, out.view(), x.view(), 1);
    CHECK_EQUAL(out(0, 0), 0.5f);
    CHECK_EQUAL(out(0, 2), 0.f);
    CHECK_EQUAL(out(1, 0), 0.f);
    cpu::log_softmax(ctx, log_out.view(), x.view(), 1);
    CHECK(std::abs(log_out(1, 2) - std::log(1 / (1 + std::exp(-1.)))) < 1e-6);
}

TEST(targets_and_indices_out_of_range_are_named) {
    const Array<float> x = random<float>({3, 4}), table = random<float>({5, 2});
    Array<int64_t> target({3});
    target(1) = 4;
    Array<float> out({1}), rows({3, 2});
    Context ctx;
    CHECK_RAISES(
        Index, "target 4 at position 1",
        cpu::cross_entropy(ctx, out.view(), none(), none(), x.view(), target.view(), none(), 1, -100, 0));
    target(1) = -1;
    CHECK_RAISES(Index, "index -1 at position 1",
                 cpu::embedding(ctx, rows.view(), table.view(), target.view(), -1, false, false));
}

TEST(embedding_gradients_sum_in_one_order) {
    const Array<int64_t> at = indices(3000, 50);
    const Array<float> g = random<float>({3000, 300});
    CHECK(same_for_all_threads([&] {
        Array<float> dw({50, 300});
        Context ctx;
        cpu::embedding_dense_backward(ctx, dw.view(), g.view(), at.view(), 50, 3, false);
        return dw;
    }));
}

TEST(attention_does_not_depend_on_threads_or_blocks) {
    const Array<float> q = random<float>({2, 3, 200, 32}), k = random<float>({2, 3, 900, 32}),
                       v = random<float>({2, 3, 900, 16});
    auto attend = [&] {
        Array<float> out({2, 3, 200, 16});
        Context ctx;
        cpu::scaled_dot_product_attention(ctx, out.view(), none(), q.view(), k.view(), v.view(), none(),
                                          none(), true, 0.2, 0);
        return out;
    };
    CHECK(same_for_all_threads(attend));
    const Array<float> out = attend();
    for (int64_t i : {0, 7, 199}) {  // compare with the definition
        double total = 0, sum = 0;
        for (int64_t j = 0; j <= i; ++j) {
            double score = 0;
            for (int64_t d = 0; d < 32; ++d) score += static_cast<double>(q(1, 2, i, d)) * k(1, 2, j, d);
            total += std::exp(0.2 * score);
            sum += std::exp(0.2 * score) * v(1, 2, j, 5);
        }
        CHECK(std::abs(out(1, 2, i, 5) - sum / total) < 1e-5);
    }
}

TEST(a_target_that_sees_nothing_gives_zeros) {
    const Array<float> q = random<float>({1, 1, 3, 4}), k = random<float>({1, 1, 5, 4}),
                       v = random<float>({1, 1, 5, 4});
    Array<bool> mask({3, 5});
    for (int64_t j = 0; j < 5; ++j) mask(0, j) = mask(2, j) = true;
    Array<float> out({1, 1, 3, 4}), sums({1, 1, 3}), dq({1, 1, 3, 4}), dk({1, 1, 5, 4}), dv({1, 1, 5, 4});
    Context ctx;
    cpu::scaled_dot_product_attention(ctx, out.view(), sums.view(), q.view(), k.view(), v.view(), mask.view(),
                                      none(), false, 1, 0);
    cpu::scaled_dot_product_attention_backward(ctx, dq.view(), dk.view(), dv.view(), q.view(), q.view(),
                                               k.view(), v.view(), mask.view(), none(), out.view(),
                                               sums.view(), false, 1, 0);
    for (int64_t d = 0; d < 4; ++d) {
        CHECK_EQUAL(out(0, 0, 1, d), 0.f);
        CHECK_EQUAL(dq(0, 0, 1, d), 0.f);
        CHECK(std::isfinite(dk(0, 0, 2, d)) && std::isfinite(dv(0, 0, 2, d)));
    }
}
