#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/linalg.h"
#include "cpu/linalg/matrices.h"

namespace rushlight::cpu {

void linalg_eigh(KernelContext&, const View& values, const View& vectors, const View& a, bool upper,
                 bool vectors_wanted) {
    if (a.numel == 0) return;
    with_scalar("linalg.eigh", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), out(vectors);
        const int64_t n = in.rows;
        const char job = vectors_wanted ? 'V' : 'N', triangle = upper ? 'L' : 'U';
        const double work = static_cast<double>(n * n * n) * 4;
        for_matrices(count_matrices(a), work, [&](int64_t begin, int64_t end) {
            const Buffer<T> rows(n * n);
            auto run = [&](int64_t b, T* memory, int64_t size, Real<T>* real, int64_t real_size,
                           int64_t* whole, int64_t whole_size, lapack::Int& info) {
                Real<T>* w = values.as<Real<T>>() + b * n;
                if constexpr (kIsComplex<T>)
                    Lapack<T>::syevd(job, triangle, n, rows.data(), n, w, memory, size, real, real_size,
                                     whole, whole_size, info.out());
                else
                    Lapack<T>::syevd(job, triangle, n, rows.data(), n, w, memory, size, whole, whole_size,
                                     info.out());
            };
            T answer{};
            Real<T> real_answer{};
            int64_t whole_answer = 0;
            lapack::Int unused;
            run(0, &answer, -1, &real_answer, -1, &whole_answer, -1, unused);
            const int64_t size = workspace_size(answer), real_size = workspace_size(real_answer),
                          whole_size = lapack::int_at(&whole_answer, 0);
            const Buffer<T> memory(size);
            const Buffer<Real<T>> real(real_size);
            const Buffer<int64_t> whole(whole_size);
            for (int64_t b = begin; b < end; ++b) {
                in.to_rows(b, rows.data(), n);
                lapack::Int info;
                run(b, memory.data(), size, real.data(), real_size, whole.data(), whole_size, info);
                if (info.get() > 0)
                    throw_linalg(
                        "linalg.eigh(A): the eigenvalues of matrix %lld of the batch were not found: the "
                        "iteration does not converge",
                        (long long)b);
                if (!vectors_wanted) continue;
                // LAPACK received the transpose, whose eigenvectors are the complex conjugates of A's.
                out.from_columns(b, rows.data(), n);
                if constexpr (kIsComplex<T>)
                    for (int64_t i = 0; i < n * n; ++i) out.at(b)[i] = conjugate(out.at(b)[i]);
            }
        });
    });
}

namespace {

// The eigenvalues and eigenvectors of one column-major matrix. For a real matrix, LAPACK's geev returns complex
// eigenvalues as two arrays, and each conjugate pair of eigenvectors as two columns: the real and the imaginary
// part.
template <class T>
class Eigen {
  public:
    using C = Complex<Real<T>>;

    Eigen(int64_t n, bool vectors)
        : n_(n),
          job_(vectors ? 'V' : 'N'),
          matrix_(n * n),
          right_(vectors ? n * n : 0),
          first_(n),
          second_(kIsComplex<T> ? 2 * n : n),
          work_([&](T* data, int64_t size) { run(data, size); }) {}

    T* matrix() const { return matrix_.data(); }
    int64_t run() { return run(work_.data(), work_.size()); }
    C value(int64_t j) const {
        if constexpr (kIsComplex<T>) return first_[j];
        else return {first_[j], second_[j]};
    }
    C vector(int64_t i, int64_t j) const {
        if constexpr (kIsComplex<T>) {
            return right_[i + j * n_];
        } else {
            if (second_[j] == 0) return {right_[i + j * n_]};
            if (second_[j] > 0) return {right_[i + j * n_], right_[i + (j + 1) * n_]};
            return {right_[i + (j - 1) * n_], -right_[i + j * n_]};
        }
    }

  private:
    int64_t run(T* data, int64_t size) {
        lapack::Int info;
        T none{};
        const int64_t one = 1;
        if constexpr (kIsComplex<T>)
            Lapack<T>::geev('N', job_, n_, matrix_.data(), n_, first_.data(), &none, one, right_.data(), n_,
                            data, size, second_.data(), info.out());
        else
            Lapack<T>::geev('N', job_, n_, matrix_.data(), n_, first_.data(), second_.data(), &none, one,
                            right_.data(), n_, data, size, info.out());
        return info.get();
    }

    const int64_t n_;
    const char job_;
    const Buffer<T> matrix_, right_;
    const Buffer<T> first_;
    const Buffer<Real<T>> second_;
    const Workspace<T> work_;
};

}  // namespace

void linalg_eig(KernelContext&, const View& values, const View& vectors, const View& a, bool vectors_wanted) {
    if (a.numel == 0) return;
    with_scalar("linalg.eig", a.dtype, [&]<class T>(T) {
        using C = Complex<Real<T>>;
        const Matrices<T> in(a);
        const int64_t n = in.rows;
        for_matrices(count_matrices(a), static_cast<double>(n * n * n) * 10, [&](int64_t begin, int64_t end) {
            Eigen<T> eigen(n, vectors_wanted);
            for (int64_t b = begin; b < end; ++b) {
                in.to_columns(b, eigen.matrix(), n);
                check_finite("linalg.eig(A)", eigen.matrix(), n * n,
                             b);  // for other matrices, geev writes past its arrays
                if (const int64_t info = eigen.run(); info > 0)
                    throw_linalg(
                        "linalg.eig(A): the eigenvalues of matrix %lld of the batch were not found: the "
                        "iteration does not converge",
                        (long long)b);
                C* value = values.as<C>() + b * n;
                for (int64_t j = 0; j < n; ++j) value[j] = eigen.value(j);
                if (!vectors_wanted) continue;
                C* vector = vectors.as<C>() + b * n * n;
                for (int64_t i = 0; i < n; ++i)
                    for (int64_t j = 0; j < n; ++j) vector[i * n + j] = eigen.vector(i, j);
            }
        });
    });
}

void linalg_svd(KernelContext&, const View& u, const View& s, const View& vh, const View& a, bool full,
                bool vectors_wanted) {
    with_scalar("linalg.svd", a.dtype, [&]<class T>(T) {
        const Matrices<T> in(a), left(u), right(vh);
        const int64_t m = in.rows, n = in.columns, k = std::min(m, n), count = count_matrices(a);
        if (k == 0) {
            for (const auto* side : {&left, &right}) {
                if (!vectors_wanted || side->rows * side->columns == 0) continue;
                for (int64_t b = 0; b < count; ++b) {
                    std::fill_n(side->at(b), side->rows * side->columns, T(0));
                    for (int64_t i = 0; i < std::min(side->rows, side->columns); ++i)
                        side->at(b)[i * side->columns + i] = T(1);
                }
            }
            return;
        }
        // LAPACK decomposes the transpose, so the left and right vectors are exchanged.
        const char job = !vectors_wanted ? 'N' : full ? 'A' : 'S';
        const int64_t wide = full ? m : k;
        const double work = static_cast<double>(m * n * k) * 4;
        for_matrices(count, work, [&](int64_t begin, int64_t end) {
            const Buffer<T> rows(m * n);
            const LapackInts whole(8 * k);
            const int64_t most = std::max(m, n);
            const Buffer<Real<T>> real(
                kIsComplex<T> ? std::max(5 * k * k + 5 * k, 2 * most * k + 2 * k * k + k) : 0);
            T none{};
            auto run = [&](int64_t b, T* memory, int64_t size, lapack::Int& info) {
                T* first = vectors_wanted ? right.at(b) : &none;
                T* second = vectors_wanted ? left.at(b) : &none;
                Real<T>* values = s.as<Real<T>>() + b * k;
                if constexpr (kIsComplex<T>)
                    Lapack<T>::gesdd(job, n, m, rows.data(), n, values, first, n, second, wide, memory, size,
                                     real.data(), whole.data(), info.out());
                else
                    Lapack<T>::gesdd(job, n, m, rows.data(), n, values, first, n, second, wide, memory, size,
                                     whole.data(), info.out());
            };
            lapack::Int unused;
            const Workspace<T> memory([&](T* data, int64_t size) { run(0, data, size, unused); });
            for (int64_t b = begin; b < end; ++b) {
                in.to_rows(b, rows.data(), n);
                check_finite("linalg.svd(A)", rows.data(), m * n, b);
                lapack::Int info;
                run(b, memory.data(), memory.size(), info);
                if (info.get() == 0) continue;
                throw_linalg(
                    "linalg.svd(A): the singular values of matrix %lld of the batch were not found: %s",
                    (long long)b,
                    info.get() < 0 ? "it has elements that are not finite"
                                   : "the iteration does not converge");
            }
        });
    });
}

}  // namespace rushlight::cpu
