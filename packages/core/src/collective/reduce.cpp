#include "collective/sequence.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/bitwise_and.h"
#include "rushlight/ops/bitwise_or.h"
#include "rushlight/ops/bitwise_xor.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/div.h"
#include "rushlight/ops/maximum.h"
#include "rushlight/ops/minimum.h"
#include "rushlight/ops/mul.h"

namespace rushlight {
namespace {

Tensor over(const char* data, int64_t n, DType dtype) {
    const int64_t one = 1;
    auto storage = Storage::wrap(const_cast<char*>(data), static_cast<size_t>(n) * itemsize(dtype), Device{},
                                 StorageKind::Foreign, nullptr, nullptr);
    return make_over(std::move(storage), IntList(&n, 1), IntList(&one, 1), 0, dtype);
}

void combine(ReduceOp op, const Tensor& a, const Tensor& b, const Tensor& out) {
    switch (op) {
        case ReduceOp::Sum:
        case ReduceOp::Avg: ops::add_out(a, b, Scalar(1), out); return;
        case ReduceOp::Product: ops::mul_out(a, b, out); return;
        case ReduceOp::Min: ops::minimum_out(a, b, out); return;
        case ReduceOp::Max: ops::maximum_out(a, b, out); return;
        case ReduceOp::BitAnd: ops::bitwise_and_out(a, b, out); return;
        case ReduceOp::BitOr: ops::bitwise_or_out(a, b, out); return;
        case ReduceOp::BitXor: ops::bitwise_xor_out(a, b, out); return;
    }
}

}  // namespace

void check_reducible(const char* who, ReduceOp op, DType dtype) {
    const bool bits = op == ReduceOp::BitAnd || op == ReduceOp::BitOr || op == ReduceOp::BitXor;
    const bool order = op == ReduceOp::Min || op == ReduceOp::Max;
    RL_CHECK(!is_float8(dtype), throw_type,
             "%s(op): not defined for dtype %s\nhint: convert first, as in x.to(torch.float32)", who,
             name(dtype));
    RL_CHECK(!bits || is_integral(dtype, true), throw_type,
             "%s(op): BAND, BOR and BXOR need tensors of an integer dtype or bool, got %s", who, name(dtype));
    RL_CHECK(!order || !is_complex(dtype), throw_type, "%s(op): MIN and MAX are not defined for dtype %s",
             who, name(dtype));
    RL_CHECK(op != ReduceOp::Avg || !is_integral(dtype, true), throw_type,
             "%s(op): AVG needs a floating or complex dtype, got %s\n"
             "hint: use SUM, and divide the result by the number of ranks",
             who, name(dtype));
}

void reduce_parts(ReduceOp op, DType dtype, int64_t n, const std::vector<const char*>& parts, char* to) {
    if (n == 0) return;
    Tensor out = over(to, n, dtype);
    const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
    // For half-precision types, the sum is computed in float32 and rounded once, at the end.
    Tensor sum = half && parts.size() > 1 ? make_tensor(IntList(&n, 1), DType::Float32) : out;
    Tensor first = over(parts[0], n, dtype);
    if (parts.size() == 1) {
        ops::copy_(out, first);
    } else {
        if (half) {
            ops::copy_(sum, first);
            first = sum;
        }
        for (size_t i = 1; i < parts.size(); ++i) {
            combine(op, first, over(parts[i], n, dtype), sum);
            first = sum;
        }
    }
    if (op == ReduceOp::Avg) ops::div_out(sum, static_cast<double>(parts.size()), sum);
    if (!sum.is_same(out)) ops::copy_(out, sum);
}

}  // namespace rushlight
