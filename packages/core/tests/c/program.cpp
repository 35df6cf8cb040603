// A program in C++ that includes the umbrella header: lists written in place, arithmetic, output to streams.
#include <iostream>

#include "rushlight/all.h"

using namespace rushlight;

int main() {
    default_generator().manual_seed(1);
    const Tensor a = ops::randn({2, 3}), b = ops::ones({3});
    Tensor c = (2 * a + b) / (b - 0.5) - a * -b;
    c += b;
    c *= 2;
    std::cout << a << "\n" << c << "\n";
    std::cout << ops::cat({a, a}, 1) << "\n" << ops::permute(a, {1, 0}).sizes().size() << "\n";
    std::cout << ops::zeros({0, 4}) << "\n" << ops::arange(2000) << "\n";
    std::cout << ops::full({2, 2}, 1e9) << "\n" << ops::mul(ops::arange(4), 0.5) << "\n";
    std::cout << ops::full({}, Complex<double>(1, -2)) << "\n" << ops::gt(a, 0) << "\n";
    std::cout << ops::arange(30, DType::Int16) << "\n" << ops::div(ops::arange(3), 0) << "\n";
    std::cout << ops::reshape(ops::arange(2400), {40, 2, 30}) << "\n"
              << ops::zeros({2}, DType::Float16) << "\n";
    a.set_requires_grad(true);
    std::cout << a << "\n" << Tensor() << "\n";
    try {
        std::cout << ops::add(ops::ones({2}), ops::ones({3}));
    } catch (const Error& error) { std::cout << error.what() << "\n"; }
}
