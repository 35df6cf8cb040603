#include <unordered_map>

#include "dispatch/table.h"
#include "rushlight/dispatch.h"

namespace rushlight {

std::vector<Operator*> operators_with_kernels() {
    std::unordered_map<const KernelSlots*, Operator*> owners;
    for (Operator* op : operators()) {
        if (!op->kernels) continue;
        Operator*& owner = owners[op->kernels];
        if (!owner || op->form < owner->form) owner = op;
    }
    std::vector<Operator*> found;
    for (Operator* op : operators())
        if (op->kernels && owners[op->kernels] == op) found.push_back(op);
    return found;
}

}  // namespace rushlight
