#include "ops/element_check.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/contiguous.h"
#include "ops/launch.h"
#include "rushlight/batched.h"
#include "rushlight/error.h"

namespace rushlight {
namespace {

const char* described(Required required) {
    switch (required) {
        case Required::NotZero: return "an integer cannot be divided by zero (ZeroDivisionError)";
        case Required::NotNegative: return "no element may be negative or NaN";
        default: return "all elements should be between 0 and 1";
    }
}

// The position of the first element for which `bad` is true, or -1.
template <class T, class F>
int64_t find_bad(const void* data, int64_t n, F bad) {
    const T* x = static_cast<const T*>(data);
    for (int64_t i = 0; i < n; ++i)
        if (bad(x[i])) return i;
    return -1;
}
template <class T>
int64_t find_zero(const View& v) {
    return find_bad<T>(v.data, v.numel, [](T x) { return x == 0; });
}
template <class T>
int64_t find_outside(const View& v, Required required) {
    const T most = required == Required::Probability ? T(1) : std::numeric_limits<T>::infinity();
    return find_bad<T>(v.data, v.numel, [most](T x) { return !(x >= 0 && x <= most); });
}

// The dtype in which elements are compared.
DType compared_as(DType dtype, Required required) {
    if (required == Required::NotZero || dtype == DType::Float32 || dtype == DType::Float64) return dtype;
    return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : DType::Float64;
}

// Returns the position of the first element that is not as required, or -1. The view is row-major and has the dtype that
// `compared_as` returns.
int64_t find(const View& row, Required required) {
    if (required != Required::NotZero)
        return row.dtype == DType::Float32 ? find_outside<float>(row, required)
                                           : find_outside<double>(row, required);
    switch (itemsize(row.dtype)) {
        case 1: return find_zero<uint8_t>(row);
        case 2: return find_zero<uint16_t>(row);
        case 4: return find_zero<uint32_t>(row);
        default: return find_zero<uint64_t>(row);
    }
}

std::string index_text(const View& v, int64_t position) {
    std::vector<int64_t> index(static_cast<size_t>(v.ndim));
    for (int d = v.ndim - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = position % v.sizes[d];
        position /= v.sizes[d];
    }
    return to_string(index);
}

void check_thunk(const KernelArgs& k) {
    const auto required = static_cast<Required>(k.params[0].as_int());
    const View& given = k.in(0);
    const View row = cpu::contiguous_in(*k.context, given, compared_as(given.dtype, required));
    const int64_t found = find(row, required);
    if (found < 0) [[likely]]
        return;
    double value = 0;
    if (required != Required::NotZero)
        value = row.dtype == DType::Float32 ? static_cast<double>(row.as<float>()[found])
                                            : row.as<double>()[found];
    const std::string op(k.params[1].as_string()), argument(k.params[2].as_string()),
        hint(k.params[3].as_string());
    throw_runtime("%s(%s): %s, found %g at index %s%s%s", op.c_str(), argument.c_str(), described(required),
                  value, index_text(given, found).c_str(), hint.empty() ? "" : "\nhint: ", hint.c_str());
}

}  // namespace

SharedKernel check_kernel{"check", {{check_thunk}}};

void check_elements(const char* op, const char* argument, const Tensor& t, Required required,
                    const char* hint) {
    const DType dtype = t.dtype();
    if (required != Required::NotZero && (dtype == DType::Bool || is_complex(dtype))) return;
    if (t.impl()->own_stages() & bit(Stage::Sparse)) return;  // the operator itself raises an error
    if (is_batched(t)) [[unlikely]]
        return check_elements(op, argument, batched_value(t), required, hint);
    const auto type = static_cast<int>(t.device().type);
    if (t.numel() == 0 || !check_kernel.slots.device[type].load(std::memory_order_acquire)) return;
    // Few elements that need no copy are compared directly, because a call of a kernel takes longer.
    constexpr int64_t kFew = 1 << 15;
    if (t.device().type == DeviceType::CPU && t.numel() < kFew && t.is_contiguous() &&
        compared_as(dtype, required) == dtype && find(t.impl()->view(), required) < 0)
        return;
    Launch launch(op, check_kernel.slots);
    launch.input(t);
    launch.param(static_cast<int64_t>(required));
    for (const char* text : {op, argument, hint}) launch.param(std::string_view(text));
    launch.run(Outputs());
}

}  // namespace rushlight
