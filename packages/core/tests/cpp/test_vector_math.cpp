// options: -DRUSHLIGHT_CPU=avx2 -DRUSHLIGHT_HAVE_AVX2=1 -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math
// sources: src/runtime/error.cpp

// Elementary functions: their errors in units in the last place, and their special values, as in C.
#include "cpu/vector_math.h"

#include <cmath>
#include <limits>
#include <random>

#include "check.h"

namespace math = rushlight::cpu::RUSHLIGHT_CPU::math;

namespace {

constexpr int kCount = 100'000;

/// Returns the largest error of f, compared with the exact function, at points drawn uniformly from [low, high].
template <class T>
double worst(auto&& f, auto&& exact, double low, double high) {
    std::mt19937_64 generator(1);
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<T> x(kCount), y(kCount);
    for (T& v : x) v = static_cast<T>(uniform(generator));
#pragma omp simd
    for (int i = 0; i < kCount; ++i) y[i] = f(x[i]);
    double error = 0;
    for (int i = 0; i < kCount; ++i) {
        const long double r = exact(static_cast<long double>(x[i]));
        const T rounded = static_cast<T>(std::abs(r));
        const long double unit = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
        error = std::max(error, static_cast<double>(std::abs(y[i] - r) / unit));
    }
    return error;
}

template <class T>
bool same(T a, T b) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
}

template <class T>
void check_errors() {
    const bool narrow = sizeof(T) == 4;
    CHECK((worst<T>([](T x) { return math::exp(x); }, [](long double x) { return std::exp(x); },
                    narrow ? -87 : -708, narrow ? 88 : 709) < 1.1));
    CHECK((worst<T>([](T x) { return math::expm1(x); }, [](long double x) { return std::expm1(x); }, -20,
                    60) < 1.8));
    CHECK((worst<T>([](T x) { return math::expm1(x); }, [](long double x) { return std::expm1(x); }, -1, 1) <
           1.8));
    CHECK((worst<T>([](T x) { return math::log(x); }, [](long double x) { return std::log(x); }, 1e-30, 3) <
           0.9));
    CHECK((worst<T>([](T x) { return math::log(x); }, [](long double x) { return std::log(x); }, 0, 1e30) <
           0.9));
    CHECK((worst<T>([](T x) { return math::log1p(x); }, [](long double x) { return std::log1p(x); }, -1, 2) <
           1.6));
    CHECK((worst<T>([](T x) { return math::tanh(x); }, [](long double x) { return std::tanh(x); }, -10, 10) <
           2.5));
    CHECK(
        (worst<T>([](T x) { return math::erf(x); }, [](long double x) { return std::erf(x); }, -5, 5) < 1.3));
    CHECK((worst<T>([](T x) { return math::sigmoid(x); },
                    [](long double x) { return 1 / (1 + std::exp(-x)); }, -30, 30) < 2.7));
}

template <class T>
void check_special_values() {
    const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const T tiny = std::numeric_limits<T>::denorm_min();
    for (T x : {T(0), T(-0.0), infinity, -infinity, nan}) {
        CHECK(same(math::exp(x), std::exp(x)));
        CHECK(same(math::expm1(x), std::expm1(x)));
        CHECK(same(math::tanh(x), std::tanh(x)));
        CHECK(same(math::erf(x), std::erf(x)));
        CHECK(same(math::log1p(x), std::log1p(x)));
        CHECK(same(math::log(x), x < 0 ? nan : std::log(x)));
    }
    CHECK(std::isnan(math::log(T(-1))));
    CHECK(same(math::log1p(T(-1)), -infinity));
    CHECK(same(math::expm1(tiny), tiny));
    CHECK(same(math::exp(T(-2000)), T(0)));
    CHECK(same(math::exp(T(2000)), infinity));
    CHECK(std::abs(math::log(tiny) - std::log(tiny)) < 1e-4);
}

}  // namespace

TEST(errors_of_float) { check_errors<float>(); }
TEST(errors_of_double) { check_errors<double>(); }
TEST(special_values_of_float) { check_special_values<float>(); }
TEST(special_values_of_double) { check_special_values<double>(); }
