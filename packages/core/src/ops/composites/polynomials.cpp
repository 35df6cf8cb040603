// Orthogonal polynomials under their usual names.
#include "bodies/polynomials.h"
#include "ops/broadcasting.h"
#include "rushlight/ops/_chebyshev_t.h"
#include "rushlight/ops/_gegenbauer.h"
#include "rushlight/ops/_hermite_h.h"
#include "rushlight/ops/_hermite_he.h"
#include "rushlight/ops/_laguerre.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/sub.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/trunc.h"
#include "tensor/promotion.h"

#include <cmath>

namespace rushlight::composites {
namespace {

// The degree, truncated to an integer, in a dtype that can represent degree - 1, because derivatives use this number
// and multiply by the degree.
struct Degree {
    Tensor whole;  // `n` refers to this tensor
    TensorOrScalar n;
    Degree(const char* op, const TensorOrScalar& input, const TensorOrScalar& given)
        : whole(given.is_tensor() ? whole_part(given.tensor()) : Tensor()),
          n(given.is_tensor() ? TensorOrScalar(whole)
                              : TensorOrScalar(Scalar(std::trunc(given.scalar().to<double>())))) {
        RL_CHECK(input.is_tensor() || given.is_tensor(), throw_type,
                 "%s(input, n): one of them must be a tensor", op);
        if (input.is_tensor() && given.is_tensor())
            broadcast_shapes(op, "input", input.tensor().sizes(), "n", given.tensor().sizes());
    }
    static Tensor whole_part(const Tensor& t) {
        return is_differentiable(t.dtype()) ? ops::trunc(t) : ops::to(t, DType::Int64);
    }
};

// Computes 2 input - 1, the argument of a shifted polynomial.
struct Shifted {
    Tensor moved;  // `x` refers to this tensor
    TensorOrScalar x;
    // Computes in the common dtype of the input and `n`. Integers are computed in float64 first, because the common dtype
    // may not represent them exactly.
    static Tensor move(const Tensor& t, const TensorOrScalar& n) {
        const TensorOrScalar both[] = {t, n};
        const DType common = result_dtype(both);
        const bool integers = !is_differentiable(t.dtype());
        const Tensor wide = ops::to(t, integers ? DType::Float64 : common);
        const Tensor moved = ops::sub(ops::mul(wide, Scalar(2)), Scalar(1));
        return integers ? ops::to(moved, is_differentiable(common) ? common : default_dtype()) : moved;
    }
    Shifted(const TensorOrScalar& input, const TensorOrScalar& n)
        : moved(input.is_tensor() ? move(input.tensor(), n) : Tensor()),
          x(input.is_tensor() ? TensorOrScalar(moved)
                              : TensorOrScalar(Scalar(2 * input.scalar().to<double>() - 1))) {}
};

// Returns the polynomial of the second kind, plus `sign` times the polynomial of the next lower degree.
Tensor second_kind(const TensorOrScalar& input, const Degree& degree, int sign) {
    const Tensor u = ops::_gegenbauer(input, degree.n, Scalar(1));
    if (sign == 0) return u;
    const Tensor less = degree.n.is_tensor() ? ops::sub(degree.whole, Scalar(1)) : Tensor();
    const Tensor u_less = ops::_gegenbauer(
        input,
        less.defined() ? TensorOrScalar(less) : TensorOrScalar(Scalar(degree.n.scalar().to<double>() - 1)),
        Scalar(1));
    return ops::add(u, u_less, Scalar(sign));
}

}  // namespace

#define RL_POLYNOMIAL(name, value)                                                \
    Tensor special_##name(const TensorOrScalar& input, const TensorOrScalar& n) { \
        const Degree degree("special." #name, input, n);                          \
        return value;                                                             \
    }
RL_POLYNOMIAL(chebyshev_polynomial_t, ops::_chebyshev_t(input, degree.n))
RL_POLYNOMIAL(chebyshev_polynomial_u, second_kind(input, degree, 0))
RL_POLYNOMIAL(chebyshev_polynomial_v, second_kind(input, degree, -1))
RL_POLYNOMIAL(chebyshev_polynomial_w, second_kind(input, degree, 1))
RL_POLYNOMIAL(shifted_chebyshev_polynomial_t, ops::_chebyshev_t(Shifted(input, n).x, degree.n))
RL_POLYNOMIAL(shifted_chebyshev_polynomial_u, second_kind(Shifted(input, n).x, degree, 0))
RL_POLYNOMIAL(shifted_chebyshev_polynomial_v, second_kind(Shifted(input, n).x, degree, -1))
RL_POLYNOMIAL(shifted_chebyshev_polynomial_w, second_kind(Shifted(input, n).x, degree, 1))
RL_POLYNOMIAL(hermite_polynomial_h, ops::_hermite_h(input, degree.n))
RL_POLYNOMIAL(hermite_polynomial_he, ops::_hermite_he(input, degree.n))
RL_POLYNOMIAL(laguerre_polynomial_l, ops::_laguerre(input, degree.n, Scalar(0)))
RL_POLYNOMIAL(legendre_polynomial_p, ops::_gegenbauer(input, degree.n, Scalar(0.5)))
#undef RL_POLYNOMIAL

}  // namespace rushlight::composites
