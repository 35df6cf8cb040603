// sources: src/cpu/convolution.cpp src/cpu/contiguous.cpp src/cpu/capability.cpp src/cpu/kernels_in_use.cpp
// sources: src/cpu/onednn/convolution.cpp src/cpu/kernels/convolution.cpp src/cpu/kernels/depthwise.cpp
// sources: src/cpu/kernels/depthwise_flat.cpp
// sources: src/cpu/kernels/winograd.cpp src/cpu/kernels/convolution_1x1.cpp src/cpu/kernels/gemm.cpp src/cpu/kernels/cast.cpp
// sources: src/cpu/kernels/contiguous.cpp src/runtime/caller_locks.cpp src/runtime/parallel.cpp src/runtime/limits.cpp src/runtime/error.cpp src/tensor/dtype.cpp
// options: -DRUSHLIGHT_CPU=avx2 -DRUSHLIGHT_HAVE_AVX2=1

// Convolutions without a vendor library, compared with the definition. Gradients are checked by the identity
// <conv(x, w), g> = <x, grad_input> = <w, grad_weight>.
#include "cpu/convolution.h"

#include <cmath>

#include "arrays.h"
#include "check.h"
#include "cpu/kernels_in_use.h"

using namespace rushlight;
using namespace check;

namespace {

struct Case {
    int64_t batch, in, out, groups, height, width, kernel, stride, padding, dilation;
};

const Case kCases[] = {
    {2, 3, 4, 1, 9, 11, 3, 1, 1, 1},
    {1, 4, 6, 2, 8, 7, 3, 2, 1, 1},
    {3, 2, 5, 1, 10, 10, 2, 3, 0, 2},
    {2, 6, 6, 6, 13, 9, 3, 1, 1, 1},
    {2, 4, 8, 4, 12, 20, 5, 2, 2, 1},
    {1, 3, 3, 3, 15, 40, 3, 2, 3, 2},
    {2, 8, 12, 1, 6, 6, 1, 1, 0, 1},
    {2, 5, 7, 1, 5, 5, 1, 2, 0, 1},
    {9, 20, 70, 1, 6, 5, 3, 1, 1, 1},
    {1, 2, 2, 1, 4, 40, 4, 4, 0, 1},
    {5, 8, 12, 4, 6, 6, 1, 1, 0, 1},
    {3, 6, 4, 2, 9, 7, 1, 2, 0, 1},
    {7, 21, 33, 1, 7, 7, 1, 1, 0, 1},
    {3, 6, 5, 1, 48, 49, 1, 1, 0, 1},
    // Depthwise: too few channels to fill a vector, and planes that are divided into strips.
    {2, 2, 2, 2, 9, 30, 3, 1, 1, 1},
    {2, 2, 4, 2, 9, 8, 3, 2, 1, 1},
    {2, 5, 5, 5, 70, 110, 3, 1, 1, 1},
    {1, 9, 18, 9, 81, 90, 5, 2, 3, 1},
    {1, 4, 4, 4, 95, 64, 3, 3, 0, 2},
};

int64_t output_size(int64_t in, const Case& c) {
    return (in + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
}

struct Lists {
    int64_t stride, padding, dilation, zero = 0;
    explicit Lists(const Case& c) : stride(c.stride), padding(c.padding), dilation(c.dilation) {}
};

double inner_product(const Array<double>& a, const Array<double>& b) {
    double sum = 0;
    for (int64_t i = 0; i < a.numel(); ++i) sum += a.data()[i] * b.data()[i];
    return sum;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-10 * (1 + std::abs(b)); }

double at_output(const Case& c, const Array<double>& x, const Array<double>& w, int64_t n, int64_t o,
                 int64_t i, int64_t j) {
    double sum = 0;
    const int64_t group = o / (c.out / c.groups);
    for (int64_t ch = 0; ch < c.in / c.groups; ++ch) {
        for (int64_t p = 0; p < c.kernel; ++p) {
            for (int64_t q = 0; q < c.kernel; ++q) {
                const int64_t y = i * c.stride - c.padding + p * c.dilation,
                              z = j * c.stride - c.padding + q * c.dilation;
                if (y < 0 || y >= c.height || z < 0 || z >= c.width) continue;
                sum += x(n, group * (c.in / c.groups) + ch, y, z) * w(o, ch, p, q);
            }
        }
    }
    return sum;
}

}  // namespace

TEST(forward_is_the_definition) {
    for (const Case& c : kCases) {
        const Array<double> x = random<double>({c.batch, c.in, c.height, c.width}),
                            bias = random<double>({c.out});
        const Array<double> w = random<double>({c.out, c.in / c.groups, c.kernel, c.kernel});
        Array<double> out({c.batch, c.out, output_size(c.height, c), output_size(c.width, c)});
        const Lists l(c);
        Context ctx;
        cpu::convolution(ctx, out.view(), x.view(), w.view(), bias.view(), {&l.stride, 1}, {&l.padding, 1},
                         {&l.dilation, 1}, false, {&l.zero, 1}, c.groups);
        for (int64_t n = 0; n < c.batch; ++n) {
            for (int64_t o = 0; o < c.out; ++o) {
                for (int64_t i = 0; i < out.size(2); ++i) {
                    for (int64_t j = 0; j < out.size(3); ++j) {
                        CHECK(close(out(n, o, i, j), at_output(c, x, w, n, o, i, j) + bias(o)));
                    }
                }
            }
        }
    }
}

TEST(gradients_are_adjoint) {
    for (const Case& c : kCases) {
        for (bool transposed : {false, true}) {
            const int64_t h = output_size(c.height, c), v = output_size(c.width, c);
            // The input of a transposed convolution has the smaller spatial size.
            const Array<double> x = transposed ? random<double>({c.batch, c.out, h, v})
                                               : random<double>({c.batch, c.in, c.height, c.width});
            const Array<double> w = random<double>({c.out, c.in / c.groups, c.kernel, c.kernel});
            const std::vector<int64_t> result = transposed
                                                    ? std::vector<int64_t>{c.batch, c.in, c.height, c.width}
                                                    : std::vector<int64_t>{c.batch, c.out, h, v};
            Array<double> out(result), g = random<double>(result), dx = random<double>({x.numel()}),
                                       dw = random<double>({w.numel()});
            Array<double> db({result[1]});
            View dx_view = x.view(), dw_view = w.view();
            dx_view.data = dx.data();
            dw_view.data = dw.data();
            const Lists l(c);
            Context ctx;
            cpu::convolution(ctx, out.view(), x.view(), w.view(), none(), {&l.stride, 1}, {&l.padding, 1},
                             {&l.dilation, 1}, transposed, {&l.zero, 1}, c.groups);
            cpu::convolution_backward(ctx, dx_view, dw_view, db.view(), g.view(), x.view(), w.view(),
                                      {&l.stride, 1}, {&l.padding, 1}, {&l.dilation, 1}, transposed,
                                      {&l.zero, 1}, c.groups);
            const double expected = inner_product(out, g);
            CHECK(close(inner_product(x, dx), expected));
            CHECK(close(inner_product(w, dw), expected));
            double sum = 0;
            for (int64_t n = 0; n < c.batch; ++n) {
                for (int64_t i = 0; i < g.size(2); ++i) {
                    for (int64_t j = 0; j < g.size(3); ++j) sum += g(n, 1, i, j);
                }
            }
            CHECK(close(db(1), sum));
        }
    }
}

TEST(threads_change_no_bit) {
    const Case cases[] = {{4, 16, 24, 1, 20, 20, 3, 1, 1, 1},
                          {8, 32, 32, 32, 16, 16, 3, 1, 1, 1},
                          {3, 33, 65, 1, 23, 21, 3, 1, 1, 1},
                          {5, 33, 70, 1, 7, 7, 1, 1, 0, 1},
                          {17, 18, 40, 2, 32, 32, 1, 1, 0, 1}};
    for (const Case& c : cases) {
        const Array<float> x = random<float>({c.batch, c.in, c.height, c.width}),
                           g = random<float>({c.batch, c.out, c.height, c.width});
        const Array<float> w = random<float>({c.out, c.in / c.groups, c.kernel, c.kernel});
        const Lists l(c);
        CHECK(same_for_all_threads([&] {
            Array<float> out({c.batch, c.out, c.height, c.width});
            Context ctx;
            cpu::convolution(ctx, out.view(), x.view(), w.view(), none(), {&l.stride, 1}, {&l.padding, 1},
                             {&l.dilation, 1}, false, {&l.zero, 1}, c.groups);
            return out;
        }));
        CHECK(same_for_all_threads([&] {
            Array<float> dw({c.out, c.in / c.groups, c.kernel, c.kernel});
            Context ctx;
            cpu::convolution_backward(ctx, none(), dw.view(), none(), g.view(), x.view(), w.view(),
                                      {&l.stride, 1}, {&l.padding, 1}, {&l.dilation, 1}, false, {&l.zero, 1},
                                      c.groups);
            return dw;
        }));
    }
}

// Sizes that are not multiples of a tile, a vector or a panel, with every padding that minimal filtering supports.
TEST(minimal_filtering_is_near_the_definition) {
    const Case cases[] = {{2, 32, 32, 1, 16, 16, 3, 1, 1, 1},
                          {2, 33, 65, 1, 13, 22, 3, 1, 0, 1},
                          {3, 71, 37, 1, 21, 9, 3, 1, 2, 1}};
    for (const Case& c : cases) {
        const int64_t h = output_size(c.height, c), v = output_size(c.width, c);
        const Array<float> x = random<float>({c.batch, c.in, c.height, c.width}),
                           g = random<float>({c.batch, c.out, h, v}),
                           w = random<float>({c.out, c.in, c.kernel, c.kernel});
        const Lists l(c);
        // The output, the gradient of the input, and the gradient of the filters.
        const auto compute = [&](bool filtering) {
            cpu::use_winograd(filtering);
            std::vector<Array<float>> results = {Array<float>({g.numel()}), Array<float>({x.numel()}),
                                                 Array<float>({w.numel()})};
            View out = g.view(), dx = x.view(), dw = w.view();
            out.data = results[0].data();
            dx.data = results[1].data();
            dw.data = results[2].data();
            Context ctx;
            cpu::convolution(ctx, out, x.view(), w.view(), none(), {&l.stride, 1}, {&l.padding, 1},
                             {&l.dilation, 1}, false, {&l.zero, 1}, 1);
            cpu::convolution_backward(ctx, dx, dw, none(), g.view(), x.view(), w.view(), {&l.stride, 1},
                                      {&l.padding, 1}, {&l.dilation, 1}, false, {&l.zero, 1}, 1);
            cpu::use_winograd(true);
            return results;
        };
        const auto fast = compute(true), direct = compute(false);
        for (size_t r = 0; r < 3; ++r) {
            double largest = 0, error = 0, differ = 0;
            for (int64_t i = 0; i < fast[r].numel(); ++i) {
                const double a = fast[r].data()[i], b = direct[r].data()[i];
                largest = std::max(largest, std::abs(b));
                error = std::max(error, std::abs(a - b));
                differ += a != b;
            }
            CHECK(error <= 2e-6 * largest);
            CHECK(differ > 0);  // the other algorithm was used
        }
    }
}
