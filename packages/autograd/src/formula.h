// The functions that derivative formulas may call: Python's operators and a few helpers for tensors, numbers and
// lists.
#pragma once

#include <algorithm>
#include <array>

#include "rushlight/autograd/saved.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/neg.h"
#include "rushlight/ops/pow.h"
#include "rushlight/ops/sub.h"

namespace rushlight::autograd::f {

template <class T>
concept Number = std::is_arithmetic_v<T>;

/// Python's None: it converts to an undefined tensor, an empty optional or an empty list.
struct None {
    operator Tensor() const { return {}; }
    template <class T>
    operator std::optional<T>() const {
        return std::nullopt;
    }
};
inline constexpr None none{};

inline bool is_none(const Tensor& t) { return !t.defined(); }
template <class T>
bool is_none(const std::optional<T>& v) {
    return !v;
}

// --- arithmetic; the result of two numbers is a number ---

inline Tensor add(const TensorOrScalar& a, const TensorOrScalar& b) { return ops::add(a, b); }
inline Tensor sub(const TensorOrScalar& a, const TensorOrScalar& b) { return ops::sub(a, b); }
inline Tensor mul(const TensorOrScalar& a, const TensorOrScalar& b) { return ops::mul(a, b); }
inline Tensor mul(const Tensor& a, Scalar b) { return b.equals(1) ? a : ops::mul(a, b); }
inline Tensor div(const TensorOrScalar& a, const TensorOrScalar& b) { return ops::div(a, b); }
inline Tensor pow(const TensorOrScalar& a, const TensorOrScalar& b) { return ops::pow(a, b); }
inline Tensor neg(const Tensor& a) { return ops::neg(a); }

// Integers wrap around on overflow, like the elements of integer tensors.
template <class A, class B> constexpr bool kIntegers = std::is_integral_v<A> && std::is_integral_v<B>;
template <class A> uint64_t bits(A a) { return static_cast<uint64_t>(static_cast<int64_t>(a)); }
inline int64_t integer(uint64_t bits) { return static_cast<int64_t>(bits); }
template <Number A, Number B> auto add(A a, B b) {
    if constexpr (kIntegers<A, B>) return integer(bits(a) + bits(b));
    else return a + b;
}
template <Number A, Number B> auto sub(A a, B b) {
    if constexpr (kIntegers<A, B>) return integer(bits(a) - bits(b));
    else return a - b;
}
template <Number A, Number B> auto mul(A a, B b) {
    if constexpr (kIntegers<A, B>) return integer(bits(a) * bits(b));
    else return a * b;
}
template <Number A, Number B> double div(A a, B b) { return static_cast<double>(a) / static_cast<double>(b); }
template <Number A> auto neg(A a) {
    if constexpr (std::is_integral_v<A>) return integer(-bits(a));
    else return -a;
}
inline Scalar neg(Scalar a) {
    if (a.is_complex()) return Scalar(-a.to<Complex<double>>());
    return a.is_floating() ? Scalar(-a.to<double>()) : Scalar(neg(a.to<int64_t>()));
}
inline int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t mod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }
inline Scalar sub(Scalar a, Scalar b) {
    if (a.is_complex() || b.is_complex()) return Scalar(a.to<Complex<double>>() - b.to<Complex<double>>());
    return a.is_floating() || b.is_floating() ? Scalar(a.to<double>() - b.to<double>())
                                              : Scalar(sub(a.to<int64_t>(), b.to<int64_t>()));
}
template <Number A> Scalar sub(A a, Scalar b) { return sub(Scalar(a), b); }
template <Number A> Scalar div(A a, Scalar b) { return Scalar(static_cast<double>(a) / b.to<double>()); }
inline Scalar mul(Scalar a, Scalar b) {
    if (a.is_complex() || b.is_complex()) return Scalar(a.to<Complex<double>>() * b.to<Complex<double>>());
    return a.is_floating() || b.is_floating() ? Scalar(a.to<double>() * b.to<double>())
                                              : Scalar(mul(a.to<int64_t>(), b.to<int64_t>()));
}

// --- lists ---

template <class... T>
    requires(std::is_convertible_v<T, int64_t> && ...)
std::array<int64_t, sizeof...(T)> list(T... v) {
    return {static_cast<int64_t>(v)...};
}
inline std::vector<int64_t> list() { return {}; }
template <class... T>
    requires(std::is_same_v<std::decay_t<T>, Tensor> && ...)
std::vector<Tensor> list(const T&... t) {
    return {t...};
}

inline std::vector<int64_t> neg(IntList list) {
    std::vector<int64_t> negated;
    for (int64_t v : list) negated.push_back(-v);
    return negated;
}
inline int64_t at(IntList list, int64_t i) {
    return list[static_cast<size_t>(i < 0 ? i + int64_t(list.size()) : i)];
}
inline const Tensor& at(std::span<Tensor> list, size_t i) { return list[i]; }
inline int64_t len(IntList list) { return static_cast<int64_t>(list.size()); }
inline int64_t len(std::span<Tensor> list) { return static_cast<int64_t>(list.size()); }
inline int64_t prod(IntList list) {
    int64_t n = 1;
    for (int64_t v : list) n *= v;
    return n;
}
inline int64_t wrap(int64_t dim, int64_t ndim) { return dim < 0 ? dim + ndim : dim; }
std::vector<int64_t> inverse_order(IntList permutation);
inline void store(std::optional<std::vector<int64_t>>& to, const std::optional<IntList>& from) {
    if (from) to.emplace(from->begin(), from->end());
}
inline std::optional<IntList> pass(const std::optional<std::vector<int64_t>>& v) {
    return v ? std::optional<IntList>(*v) : std::nullopt;
}
inline std::optional<std::string_view> pass(const std::optional<std::string>& v) {
    return v ? std::optional<std::string_view>(*v) : std::nullopt;
}

// --- shapes ---

inline IntList shape_of(const Tensor& t) { return t.sizes(); }
inline IntList shape_of(const TensorOrScalar& t) { return t.is_tensor() ? t.tensor().sizes() : IntList(); }
inline DType dtype_of(const Tensor& t) { return t.dtype(); }
inline Device device_of(const Tensor& t) { return t.device(); }
inline int64_t ndim_of(const Tensor& t) { return t.dim(); }
inline int64_t ndim_of(const TensorOrScalar& t) { return t.is_tensor() ? t.tensor().dim() : 0; }
inline int64_t numel_of(const Tensor& t) { return t.numel(); }
inline MemoryFormat memory_format_of(const Tensor& t) { return format_of(t); }

/// Splits the gradient of a result of `cat` along `dim` into pieces with the shapes and dtypes of the inputs.
std::vector<Tensor> split_like(const Tensor& grad, std::span<const SavedShape> shapes, int64_t dim);
Tensor fit(const Tensor& grad, IntList shape, DType dtype);
/// Broadcasts a reduced result, or its gradient, over the dimensions that were reduced.
Tensor restore(const Tensor& reduced, IntList shape, const std::optional<IntList>& dim, bool keepdim);
inline Tensor restore(const Tensor& r, IntList shape, IntList dim, bool keepdim) {
    return restore(r, shape, std::optional<IntList>(dim), keepdim);
}
inline Tensor restore(const Tensor& r, IntList shape, const std::vector<int64_t>& dim, bool keepdim) {
    return restore(r, shape, std::optional<IntList>(dim), keepdim);
}
inline Tensor restore(const Tensor& r, IntList shape, int64_t dim, bool keepdim) {
    return restore(r, shape, std::optional<IntList>(IntList(&dim, 1)), keepdim);
}
inline int64_t reduced(IntList shape, const std::optional<IntList>& dim) {
    if (!dim || dim->empty()) return prod(shape);
    int64_t n = 1;
    for (int64_t d : *dim)
        if (!shape.empty()) n *= shape[static_cast<size_t>(wrap(d, static_cast<int64_t>(shape.size())))];
    return n;
}
inline std::optional<IntList> dims(const std::optional<int64_t>& dim) {
    return dim ? std::optional<IntList>(IntList(&*dim, 1)) : std::nullopt;
}

/// Returns a number rounded to the dtype of `t`.
Scalar rounded(const Scalar& number, const Tensor& t);
template <Number A> double as_double(A number) { return static_cast<double>(number); }
inline double as_double(const Scalar& number) { return number.to<double>(); }

/// Both functions return `t` multiplied by `weight`, or `t` itself if `weight` is undefined. In channelwise(), `weight`
/// has one element for each channel, that is, for each index of the second dimension of `t`.
Tensor scaled(const Tensor& t, const Tensor& weight);
Tensor channelwise(const Tensor& t, const Tensor& weight);
/// Returns `t` in a memory format other than Preserve. If `t` already has this format, returns `t` itself.
Tensor in_format(const Tensor& t, MemoryFormat format);

// --- nodes ---

/// Returns false if no gradient arrived. Otherwise replaces absent gradients by zeros and returns true.
bool materialize(std::span<Tensor> grads, const SavedShape* shapes);
bool wants_any(Node& node, uint32_t first, uint32_t last);
bool has_any(Node& node, uint32_t first, uint32_t last);  // edges
void spread(const std::vector<Tensor>& shares, Node& node, uint32_t first, std::span<Tensor> out);

/// Conjugates complex gradients in place, and returns whether there was a complex gradient. Note [Complex gradients].
bool conjugate_all(std::span<Tensor> grads);
inline bool conjugate(std::span<Tensor> grads) {
    for (const Tensor& g : grads)
        if (g.defined() && is_complex(g.dtype())) [[unlikely]]
            return conjugate_all(grads);
    return false;
}
Tensor conjugate_one(const Tensor& share);
inline Tensor conjugated(bool conjugate, Tensor share) {
    return conjugate ? conjugate_one(share) : std::move(share);
}
std::vector<Tensor> conjugated(bool conjugate, std::vector<Tensor> shares);

// --- forward mode ---

/// Adds the value of a forward-mode rule to the tangent of a result. If the rule returns a tensor, this is the value
/// for the first result. If it returns a tuple, the tuple has one entry for each result: a value or None.
inline void add_tangent(Tensor& total, const Tensor& share) {
    if (share.defined()) total = total.defined() ? ops::add(total, share) : share;
}
inline void add_tangent(Tensor&, None) {}
inline void accumulate(Tensor* totals, const Tensor& share) { add_tangent(totals[0], share); }
template <class... T>
void accumulate(Tensor* totals, const std::tuple<T...>& shares) {
    std::apply([&](const auto&... share) { (add_tangent(*totals++, share), ...); }, shares);
}
/// Attaches the tangent of a result. Unless the result is a view, the tangent gets separate memory: in-place
/// operators write to it, and the rule may have returned an argument's tangent or a view of one.
void give_tangent(const Tensor& result, Tensor tangent);
Tensor tangent_or_zeros(const Tensor& t);
inline Tensor tangent_or_zeros(const TensorOrScalar& t) { return tangent_or_zeros(t.tensor()); }
std::vector<Tensor> tangent_or_zeros(TensorList list);
/// Returns whether a graph of the tensor, or of one of its tangents, would be recorded.
inline bool has_graph(const Tensor& t) { return needs_grad(t) || (t.defined() && tangent_needs_grad(t)); }
inline bool has_graph(const TensorOrScalar& t) { return t.is_tensor() && has_graph(t.tensor()); }
inline bool has_graph(const std::optional<TensorOrScalar>& t) { return t && has_graph(*t); }
inline bool has_graph(TensorList list) {
    return std::ranges::any_of(list, [](const Tensor& t) { return has_graph(t); });
}
/// Returns the value that a tensor has before an in-place operator with these arguments writes to it: a copy, if a graph
/// is recorded that may save the value.
template <class... Others>
Tensor before_write(const Tensor& target, const Others&... others) {
    const bool recorded = grad_mode() && (has_graph(target) || ... || has_graph(others));
    return recorded ? ops::clone(target, std::nullopt) : target;
}
/// Returns the tangent of a tensor to which `value` is about to be written. The tangent of a view is a view of its root's
/// tangent, so that a write is visible in both. If the root has no tangent yet, it gets zeros, which are batched in the
/// levels in which `value` is batched: the tangents of jacfwd are batched, but the tensors to which they belong are not.
Tensor tangent_to_write(const Tensor& t, const Tensor& value);
/// Writes the tangent; an undefined value means zeros. Does nothing for tensors of integers and bools, which
/// have no tangents.
void write_tangent(const Tensor& t, const Tensor& value);
void set_tangents(const std::vector<Tensor>& results, const std::vector<Tensor>& tangents);

}  // namespace rushlight::autograd::f
