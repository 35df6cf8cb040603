#include "tensor/promotion.h"

namespace rushlight {

DType default_dtype_of(Scalar number) {
    if (number.is_complex()) return complex_dtype(default_dtype());
    return number.is_floating() ? default_dtype() : number.dtype();
}

void Promotion::add(int priority, DType dtype) {
    dtype_[priority] = seen_[priority] ? promote(dtype_[priority], dtype) : dtype;
    seen_[priority] = true;
}

void Promotion::add(const TensorOrScalar& operand) {
    if (!operand.is_tensor()) add(0, default_dtype_of(operand.scalar()));
    else add(operand.tensor().dim() > 0 ? 2 : 1, operand.tensor().dtype());
}

DType Promotion::result() const {
    DType joint = DType::Bool;
    bool any = false;
    for (int priority = 2; priority >= 0; --priority) {
        if (!seen_[priority]) continue;
        const DType dtype = dtype_[priority];
        if (!any) {
            joint = dtype;
        } else if (category(dtype) > category(joint)) {
            // If an operand of lower priority has a higher category, it determines the category. A number then
            // contributes the default dtype of its category. Complex numbers take the precision of floating-point
            // operands of higher priority.
            joint = is_complex(dtype) && is_floating(joint) ? complex_dtype(joint) : promote(joint, dtype);
        }
        any = true;
    }
    return joint;
}

DType result_dtype(std::span<const TensorOrScalar> operands) {
    Promotion promotion;
    for (const TensorOrScalar& operand : operands) promotion.add(operand);
    return promotion.result();
}

}  // namespace rushlight
