#include "ops/expects.h"

#include <algorithm>
#include <string>

#include "ops/matrices.h"
#include "rushlight/error.h"

namespace rushlight {

void Expects::given(const char* argument, const Tensor& t) const {
    RL_CHECK(t.defined(), throw_type, "%s(%s): must be a Tensor, not None", op_, argument);
}

void Expects::types(const char* argument, const Tensor& t, Types wanted) const {
    if (wanted == Types::Lapack) return check_matrix(op_, argument, t);
    const DType d = t.dtype();
    const bool fits = wanted == Types::Floating ? is_floating(d) : d == DType::Float32 || d == DType::Float64;
    RL_CHECK(fits, throw_not_implemented, "%s(%s): needs %s, got dtype %s\nhint: convert the tensor first",
             op_, argument, wanted == Types::Floating ? "a floating dtype" : "float32 or float64", name(d));
}

void Expects::dtype(const char* argument, const Tensor& t, DType wanted) const {
    RL_CHECK(t.dtype() == wanted, throw_runtime, "%s(%s): needs dtype %s, got %s", op_, argument,
             name(wanted), name(t.dtype()));
}

void Expects::like(const char* argument, const Tensor& t, const char* other, const Tensor& model) const {
    const IntList a = t.sizes(), b = model.sizes();
    RL_CHECK(t.dtype() == model.dtype() && std::equal(a.begin(), a.end(), b.begin(), b.end()), throw_runtime,
             "%s(%s): needs the dtype and shape of %s, %s %s, got %s %s", op_, argument, other,
             name(model.dtype()), to_string(b).c_str(), name(t.dtype()), to_string(a).c_str());
}

void Expects::shape(const char* argument, const Tensor& t, const char* pattern,
                    std::initializer_list<Dim> dims) {
    if (!fits(t.sizes(), dims)) [[unlikely]]
        fail_shape(argument, t, pattern);
}

bool Expects::fits(IntList sizes, std::initializer_list<Dim> dims) {
    // At most one item stands for several dimensions: for all dimensions that no other item stands for.
    size_t taken = 0;
    for (const Dim& d : dims) {
        if (d.kind == Dim::List) taken += d.sizes.size();
        else if (d.kind == Dim::Rest) taken += known_[d.value] ? rests_[d.value].size() : 0;
        else taken += d.kind != Dim::Any;
    }
    if (taken > sizes.size()) return false;
    const size_t left = sizes.size() - taken;
    bool open = false;
    size_t at = 0;
    auto equal = [&](IntList wanted) {
        const bool same =
            std::equal(wanted.begin(), wanted.end(), sizes.begin() + static_cast<std::ptrdiff_t>(at));
        at += wanted.size();
        return same;
    };
    for (const Dim& d : dims) {
        switch (d.kind) {
            case Dim::Name: {
                int64_t& size = sizes_[d.value];
                if (size < 0) size = sizes[at];
                if (sizes[at++] != size) return false;
                break;
            }
            case Dim::Size:
                if (d.value >= 0 && sizes[at] != d.value) return false;
                ++at;
                break;
            case Dim::List:
                if (!equal(d.sizes)) return false;
                break;
            case Dim::Rest:
                if (known_[d.value]) {
                    if (!equal(rests_[d.value])) return false;
                    break;
                }
                known_[d.value] = true;
                rests_[d.value] = sizes.subspan(at, left);
                [[fallthrough]];
            case Dim::Any:
                open = true;
                at += left;
                break;
        }
    }
    return open || left == 0;
}

void Expects::fail_shape(const char* argument, const Tensor& t, const char* pattern) const {
    std::string sizes;
    for (int i = 0; i < count_; ++i)
        if (sizes_[i] >= 0)
            sizes += (sizes.empty() ? " with " : ", ") + std::string(names_[i]) + " = " +
                     std::to_string(sizes_[i]);
    throw_runtime("%s(%s): needs shape %s%s, got %s", op_, argument, pattern, sizes.c_str(),
                  to_string(t.sizes()).c_str());
}

void Expects::length(const char* argument, IntList list, size_t count) const {
    RL_CHECK(list.size() == count, throw_runtime, "%s(%s): needs %zu numbers, got %s", op_, argument, count,
             to_string(list).c_str());
}

void Expects::between(const char* argument, int64_t value, int64_t least, int64_t most) const {
    if (value >= least && value <= most) return;
    RL_CHECK(most != INT64_MAX, throw_runtime, "%s(%s): must be at least %lld, got %lld", op_, argument,
             (long long)least, (long long)value);
    throw_runtime("%s(%s): must be between %lld and %lld, got %lld", op_, argument, (long long)least,
                  (long long)most, (long long)value);
}

}  // namespace rushlight
