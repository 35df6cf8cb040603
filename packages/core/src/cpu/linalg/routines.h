// LAPACK's routines for each scalar type.
#pragma once

#include "runtime/lapack.h"
#include "rushlight/complex.h"

namespace rushlight::cpu {

/// The LAPACK routines for T. orglq, ormlq and syevd are named after the real routines; for complex types they are the
/// routines for unitary and Hermitian matrices. hetrf and hetrs are the routines for Hermitian matrices; if T is real,
/// they are the routines for symmetric matrices.
template <class T>
struct Lapack;

#define RL_ROUTINE(field, name) static inline constinit lapack::Routine field{name};
#define RL_LAPACK(T, letter, symmetric, orthogonal) \
    template <>                                     \
    struct Lapack<T> {                              \
        RL_ROUTINE(trsm, letter "trsm")             \
        RL_ROUTINE(potrf, letter "potrf")           \
        RL_ROUTINE(getrf, letter "getrf")           \
        RL_ROUTINE(getrs, letter "getrs")           \
        RL_ROUTINE(getri, letter "getri")           \
        RL_ROUTINE(sytrf, letter "sytrf")           \
        RL_ROUTINE(sytrs, letter "sytrs")           \
        RL_ROUTINE(hetrf, letter symmetric "trf")   \
        RL_ROUTINE(hetrs, letter symmetric "trs")   \
        RL_ROUTINE(gelqf, letter "gelqf")           \
        RL_ROUTINE(orglq, letter orthogonal "glq")  \
        RL_ROUTINE(ormlq, letter orthogonal "mlq")  \
        RL_ROUTINE(syevd, letter symmetric "evd")   \
        RL_ROUTINE(gesdd, letter "gesdd")           \
        RL_ROUTINE(gesvd, letter "gesvd")           \
        RL_ROUTINE(geev, letter "geev")             \
        RL_ROUTINE(gels, letter "gels")             \
        RL_ROUTINE(gelsy, letter "gelsy")           \
        RL_ROUTINE(gelsd, letter "gelsd")           \
        RL_ROUTINE(gelss, letter "gelss")           \
    };
RL_LAPACK(float, "s", "sy", "or")
RL_LAPACK(double, "d", "sy", "or")
RL_LAPACK(Complex<float>, "c", "he", "un")
RL_LAPACK(Complex<double>, "z", "he", "un")
#undef RL_LAPACK
#undef RL_ROUTINE

}  // namespace rushlight::cpu
