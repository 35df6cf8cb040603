#include <cmath>
#include <limits>

#include "cpu/contiguous.h"
#include "cpu/linalg.h"
#include "cpu/linalg/matrices.h"
#include "cpu/linalg/small.h"

namespace rushlight::cpu {
namespace {

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

template <class T>
Real<T> magnitude(const T& x) {
    if constexpr (kIsComplex<T>) return std::hypot(x.re, x.im);
    else return std::abs(x);
}

// The factors of one matrix. They are stored in an output if they are requested, otherwise in memory of the thread.
template <class T>
class Factors {
  public:
    Factors(const View& a, const View& factors, const View& pivots)
        : in_(a),
          kept_(factors),
          pivots_(pivots),
          n_(in_.rows),
          own_(factors.defined() ? 0 : n_ * n_),
          order_(is_small() ? 0 : n_) {}

    // Factorizes the transpose of matrix b. Returns LAPACK's INFO.
    int64_t make(int64_t b) {
        data_ = kept_.defined() ? kept_.at(b) : own_.data();
        in_.to_rows(b, data_, n_);
        lapack::Int info;
        const int64_t singular = is_small() ? small_lu(n_, n_, data_, 1, n_, few_) : 0;
        if (!is_small()) Lapack<T>::getrf(n_, n_, data_, n_, order_.data(), info.out());
        if (pivots_.defined())
            for (int64_t i = 0; i < n_; ++i)
                pivots_.as<int32_t>()[b * n_ + i] = static_cast<int32_t>(exchanged(i));
        return is_small() ? singular : info.get();
    }
    // Solves a system with the factors, or with their transpose, for k columns in place.
    void solve(bool transposed, int64_t k, T* x) {
        if (is_small()) return small_solve(transposed, n_, k, data_, few_, x);
        lapack::Int unused;
        Lapack<T>::getrs(transposed ? 'T' : 'N', n_, k, data_, n_, order_.data(), x, n_, unused.out());
    }
    // Uses factors that were computed before, in place of `make`. Checks their pivots, because LAPACK does not
    // check them.
    void take(T* data, const int32_t* exchanged) {
        for (int64_t i = 0; i < n_; ++i)
            RL_CHECK(exchanged[i] >= 1 && exchanged[i] <= n_, throw_runtime,
                     "linalg.solve(pivots): must be row numbers from 1 to %lld, found %d", (long long)n_,
                     exchanged[i]);
        data_ = data;
        if (is_small()) std::copy_n(exchanged, n_, few_);
        else order_.load(exchanged, n_);
    }

    // Whether all elements of matrix b are finite.
    [[gnu::noinline, gnu::cold]] bool is_finite(int64_t b) const {
        for (int64_t i = 0; i < n_; ++i)
            for (int64_t j = 0; j < n_; ++j)
                if (!std::isfinite(magnitude(in_.at(b)[i * in_.row_stride + j * in_.column_stride])))
                    return false;
        return true;
    }
    bool is_small() const { return n_ <= kSmallMatrix; }
    int64_t exchanged(int64_t i) const { return is_small() ? few_[i] : order_[i]; }
    T diagonal(int64_t i) const { return data_[i * n_ + i]; }
    T* data() const { return data_; }
    const LapackInts& order() const { return order_; }

  private:
    const Matrices<T> in_, kept_;
    const View& pivots_;
    const int64_t n_;
    const Buffer<T> own_;
    const LapackInts order_;
    int32_t few_[kSmallMatrix];
    T* data_ = nullptr;
};

// The right-hand side of a system, copied to the layout that the solver needs. A X = B is solved for the columns of
// B, and X A = B for the rows of B, which are the columns of B^T.
template <class T>
class RightSide {
  public:
    RightSide(const View& b, const View& x, bool left)
        : in_(b),
          out_(x),
          left_(left),
          in_place_(!left || in_.columns == 1),
          own_(in_place_ ? 0 : in_.rows * in_.columns) {}
    int64_t count() const { return left_ ? in_.columns : in_.rows; }
    T* load(int64_t b) const {
        if (!in_place_) {
            in_.to_columns(b, own_.data(), in_.rows);
            return own_.data();
        }
        in_.to_rows(b, out_.at(b), in_.columns);
        return out_.at(b);
    }
    void store(int64_t b) const {
        if (!in_place_) out_.from_columns(b, own_.data(), in_.rows);
    }
    int64_t numel() const { return in_.rows * in_.columns; }

  private:
    const Matrices<T> in_, out_;
    const bool left_, in_place_;
    const Buffer<T> own_;
};

template <class T>
void conjugate_all([[maybe_unused]] T* x, [[maybe_unused]] int64_t n) {
    if constexpr (kIsComplex<T>)
        for (int64_t i = 0; i < n; ++i) x[i] = conjugate(x[i]);
}

}  // namespace

void linalg_solve(KernelContext&, const View& x, const View& info, const View& factors, const View& pivots,
                  const View& a, const View& b, bool left) {
    if (a.numel == 0) return clear(info);
    with_scalar("linalg.solve", a.dtype, [&]<class T>(T) {
        const int64_t n = a.size(-1);
        for_matrices(count_matrices(a), cube(n) * 2 / 3, [&](int64_t begin, int64_t end) {
            Factors<T> f(a, factors, pivots);
            const RightSide<T> right(b, x, left);
            for (int64_t i = begin; i < end; ++i) {
                info.as<int32_t>()[i] = static_cast<int32_t>(f.make(i));
                if (right.numel() == 0) continue;
                T* columns = right.load(i);
                f.solve(left, right.count(), columns);
                right.store(i);
            }
        });
    });
}

void linalg_solve_again(KernelContext& ctx, const View& x, const View&, const View& factors,
                        const View& pivots, const View& b, bool left, bool transposed) {
    if (x.numel == 0) return;
    const View f = contiguous_in(ctx, factors), p = contiguous_in(ctx, pivots);
    with_scalar("linalg.solve", x.dtype, [&]<class T>(T) {
        const int64_t n = factors.size(-1), each = x.size(-1) * x.size(-2);
        for_matrices(count_matrices(x), 2.0 * static_cast<double>(each) * static_cast<double>(n),
                     [&](int64_t begin, int64_t end) {
                         Factors<T> given(f, f, p);
                         const RightSide<T> right(b, x, left);
                         for (int64_t i = begin; i < end; ++i) {
                             given.take(f.as<T>() + i * n * n, p.as<int32_t>() + i * n);
                             T* columns = right.load(i);
                             if (transposed) conjugate_all(columns, each);
                             given.solve(left != transposed, right.count(), columns);
                             if (transposed) conjugate_all(columns, each);
                             right.store(i);
                         }
                     });
    });
}

void linalg_solve_triangular(KernelContext&, const View& x, const View& a, const View& b, bool upper,
                             bool left, bool unitriangular) {
    if (x.numel == 0) return;
    with_scalar("linalg.solve_triangular", x.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), right(b), out(x);
        const int64_t n = in.rows, rows = out.rows, columns = out.columns;
        // A is read in place if it is row-major or column-major. Otherwise it is copied.
        const bool by_rows = in.column_stride == 1 && in.row_stride >= n;
        const bool by_columns = !by_rows && in.row_stride == 1 && in.column_stride >= n;
        const bool copied = !by_rows && !by_columns;
        const int64_t lda = by_columns ? in.column_stride : by_rows ? in.row_stride : n;
        // LAPACK receives the transpose of X, so the transpose of A is on the other side.
        const char side = left ? 'R' : 'L', triangle = upper == by_columns ? 'U' : 'L',
                   how = by_columns ? 'T' : 'N', diagonal = unitriangular ? 'U' : 'N';
        const double work = static_cast<double>(rows * columns) * static_cast<double>(n);
        for_matrices(count_matrices(x), work, [&](int64_t begin, int64_t end) {
            const Buffer<T> own(copied ? n * n : 0);
            const T one(1);
            for (int64_t i = begin; i < end; ++i) {
                if (copied) in.to_rows(i, own.data(), n);
                const T* triangular = copied ? own.data() : in.at(i);
                right.to_rows(i, out.at(i), columns);
                Lapack<T>::trsm(side, triangle, how, diagonal, columns, rows, one, triangular, lda, out.at(i),
                                columns);
            }
        });
    });
}

void linalg_inv(KernelContext&, const View& inverse, const View& info, const View& a) {
    if (a.numel == 0) return clear(info);
    with_scalar("linalg.inv", a.dtype, [&]<class T>(T) {
        const View none{nullptr, nullptr, nullptr, 0, -1, a.dtype, 0};
        const int64_t n = a.size(-1);
        for_matrices(count_matrices(a), 2 * cube(n), [&](int64_t begin, int64_t end) {
            const bool small = n <= kSmallMatrix;
            Factors<T> f(a, small ? none : inverse, none);
            lapack::Int unused;
            const Workspace<T> work([&](T* data, int64_t size) {
                if (!small)
                    Lapack<T>::getri(n, inverse.as<T>(), n, f.order().data(), data, size, unused.out());
            });
            for (int64_t i = begin; i < end; ++i) {
                const int64_t singular = f.make(i);
                info.as<int32_t>()[i] = static_cast<int32_t>(singular);
                T* out = inverse.as<T>() + i * n * n;
                if (small) {
                    for (int64_t j = 0; j < n * n; ++j) out[j] = T(j % (n + 1) == 0);
                    f.solve(false, n, out);
                } else if (!singular) {
                    Lapack<T>::getri(n, f.data(), n, f.order().data(), work.data(), work.size(),
                                     unused.out());
                }
            }
        });
    });
}

void linalg_det(KernelContext&, const View& det, const View& factors, const View& pivots, const View& a) {
    with_scalar("linalg.det", a.dtype, [&]<class T>(T) {
        const int64_t n = a.size(-1);
        for_matrices(count_matrices(a), cube(n) * 2 / 3, [&](int64_t begin, int64_t end) {
            Factors<T> f(a, factors, pivots);
            for (int64_t b = begin; b < end; ++b) {
                T product(1);
                if (n > 0) f.make(b);
                for (int64_t i = 0; i < n; ++i) {
                    product = product * f.diagonal(i);
                    if (f.exchanged(i) != i + 1) product = -product;
                }
                // LAPACK never chooses a NaN as pivot, so the factor of a matrix with NaN can have a zero on its
                // diagonal.
                if (product == T(0) && !f.is_finite(b))
                    product = T(std::numeric_limits<Real<T>>::quiet_NaN());
                det.as<T>()[b] = product;
            }
        });
    });
}

void linalg_slogdet(KernelContext&, const View& sign, const View& logabsdet, const View& factors,
                    const View& pivots, const View& a) {
    with_scalar("linalg.slogdet", a.dtype, [&]<class T>(T) {
        const int64_t n = a.size(-1);
        for_matrices(count_matrices(a), cube(n) * 2 / 3, [&](int64_t begin, int64_t end) {
            Factors<T> f(a, factors, pivots);
            for (int64_t b = begin; b < end; ++b) {
                T direction(1);
                Real<T> sum(0);
                if (n > 0) f.make(b);
                for (int64_t i = 0; i < n; ++i) {
                    const T d = f.diagonal(i);
                    const Real<T> size = magnitude(d);
                    direction = size == 0 ? T(0) : direction * (d / T(size));
                    if (f.exchanged(i) != i + 1) direction = -direction;
                    sum += std::log(size);
                }
                if (direction == T(0) && !f.is_finite(b)) {
                    sum = std::numeric_limits<Real<T>>::quiet_NaN();
                    direction = T(sum);
                }
                sign.as<T>()[b] = direction;
                logabsdet.as<Real<T>>()[b] = sum;
            }
        });
    });
}

void linalg_lstsq(KernelContext&, const View& solution, const View& rank, const View& singular_values,
                  const View& a, const View& b, double rcond, int64_t driver) {
    enum Driver { Gels, Gelsy, Gelsd, Gelss };
    if (solution.numel == 0 || a.numel == 0) {
        for (const View* v : {&solution, &rank, &singular_values}) clear(*v);
        return;
    }
    with_scalar("linalg.lstsq", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), right(b), out(solution);
        const int64_t m = in.rows, n = in.columns, k = right.columns, least = std::min(m, n),
                      ld = std::max(m, n);
        const auto limit = static_cast<Real<T>>(rcond);
        for_matrices(
            count_matrices(a), static_cast<double>(2 * m * n * least), [&](int64_t begin, int64_t end) {
                const Buffer<T> columns(m * n), x(ld * k);
                const Buffer<Real<T>> values(least);
                const LapackInts order(n);
                lapack::Int found;
                // The first and the last arguments are the same for all drivers. `real` and `whole` are scratch
                // arrays for the drivers that need them.
                auto run = [&](T* work, int64_t size, Real<T>* real, int64_t* whole, lapack::Int& info) {
                    T* c = columns.data();
                    Real<T>* s = values.data();
                    if (driver == Gels) {
                        Lapack<T>::gels('N', m, n, k, c, m, x.data(), ld, work, size, info.out());
                    } else if constexpr (kIsComplex<T>) {
                        if (driver == Gelsy)
                            Lapack<T>::gelsy(m, n, k, c, m, x.data(), ld, order.data(), limit, found.out(),
                                             work, size, real, info.out());
                        if (driver == Gelsd)
                            Lapack<T>::gelsd(m, n, k, c, m, x.data(), ld, s, limit, found.out(), work, size,
                                             real, whole, info.out());
                        if (driver == Gelss)
                            Lapack<T>::gelss(m, n, k, c, m, x.data(), ld, s, limit, found.out(), work, size,
                                             real, info.out());
                    } else {
                        if (driver == Gelsy)
                            Lapack<T>::gelsy(m, n, k, c, m, x.data(), ld, order.data(), limit, found.out(),
                                             work, size, info.out());
                        if (driver == Gelsd)
                            Lapack<T>::gelsd(m, n, k, c, m, x.data(), ld, s, limit, found.out(), work, size,
                                             whole, info.out());
                        if (driver == Gelss)
                            Lapack<T>::gelss(m, n, k, c, m, x.data(), ld, s, limit, found.out(), work, size,
                                             info.out());
                    }
                };
                T answer{};
                Real<T> real_answer{};
                int64_t whole_answer = 0;
                lapack::Int unused;
                run(&answer, -1, &real_answer, &whole_answer, unused);
                const int64_t lwork = workspace_size(answer);
                const Buffer<T> work(lwork);
                const Buffer<Real<T>> real(std::max(workspace_size(real_answer), 5 * ld));
                const Buffer<int64_t> whole(lapack::int_at(&whole_answer, 0) + 1);
                for (int64_t i = begin; i < end; ++i) {
                    in.to_columns(i, columns.data(), m);
                    right.to_columns(i, x.data(), ld);
                    check_finite("linalg.lstsq(A)", columns.data(), m * n, i);
                    for (int64_t j = 0; j < k; ++j) check_finite("linalg.lstsq(B)", x.data() + j * ld, m, i);
                    for (int64_t j = 0; j < n; ++j) order.set(j, 0);
                    lapack::Int info;
                    run(work.data(), lwork, real.data(), whole.data(), info);
                    if (info.get() > 0 && driver == Gels)
                        throw_linalg(
                            "linalg.lstsq(A): matrix %lld of the batch does not have full rank\n"
                            "hint: pass driver='gelsy', 'gelsd' or 'gelss', which do not require full rank",
                            (long long)i);
                    if (info.get() > 0)
                        throw_linalg(
                            "linalg.lstsq(A): the singular values of matrix %lld of the batch were not found: "
                            "the iteration does not converge",
                            (long long)i);
                    out.from_columns(i, x.data(), ld);
                    if (rank.numel > 0) rank.as<int64_t>()[i] = found.get();
                    if (singular_values.numel > 0)
                        std::copy_n(values.data(), least, singular_values.as<Real<T>>() + i * least);
                }
            });
    });
}

}  // namespace rushlight::cpu
