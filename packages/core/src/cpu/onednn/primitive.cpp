#if RUSHLIGHT_WITH_ONEDNN

#include "cpu/onednn/primitive.h"

#include <pthread.h>

#include "runtime/constant_memory.h"

namespace rushlight::cpu::onednn {
namespace {

// Returns a number of at least 1 that is the same for equal layouts. The caller must hold `making_primitives()`.
uint64_t number_of(const_dnnl_memory_desc_t layout) {
    static auto* const known =
        new std::vector<Layout>();  // not deleted: oneDNN may be closed before static objects are destroyed
    for (size_t i = 0; i < known->size(); ++i)
        if (functions().memory_desc_equal((*known)[i].get(), layout)) return i + 1;
    dnnl_memory_desc_t copy;
    check(functions().memory_desc_clone(&copy, layout), "layout");
    known->emplace_back(copy);
    return known->size();
}

}  // namespace

std::mutex& making_primitives() {
    static std::mutex mutex;
    [[maybe_unused]] static const int registered =
        pthread_atfork([] { making_primitives().lock(); }, [] { making_primitives().unlock(); },
                       [] { making_primitives().unlock(); });
    return mutex;
}

Layout strided_layout(int ndim, const dnnl_dim_t* sizes, const dnnl_dim_t* strides, dnnl_data_type_t type) {
    dnnl_memory_desc_t layout;
    check(functions().memory_desc_create_with_strides(&layout, ndim, sizes, type, strides), "strided layout");
    return Layout(layout);
}

Layout any_layout(int ndim, const dnnl_dim_t* sizes, dnnl_data_type_t type) {
    dnnl_memory_desc_t layout;
    check(functions().memory_desc_create_with_tag(&layout, ndim, sizes, type, dnnl_format_tag_any), "layout");
    return Layout(layout);
}

Primitive::Primitive(Plan plan) : plan_(std::move(plan)) {
    dnnl_primitive_t primitive;
    check(functions().primitive_create(&primitive, plan_.get()), "primitive");
    primitive_.reset(primitive);
    note_scratch(plan_.get());
}

Owned<dnnl_memory_t> Primitive::memory(const_dnnl_memory_desc_t layout) {
    dnnl_memory_t memory;
    check(functions().memory_create(&memory, layout, engine(), DNNL_MEMORY_NONE), "memory");
    return Owned<dnnl_memory_t>(memory);
}

void Primitive::note_scratch(dnnl_primitive_desc_t plan) {
    const_dnnl_memory_desc_t layout = functions().primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0);
    const size_t bytes = layout == nullptr ? 0 : functions().memory_desc_get_size(layout);
    if (bytes <= scratch_bytes_) return;
    scratch_bytes_ = bytes;
    scratch_ = memory(layout);
}

void Primitive::add(int argument, dnnl_query_t query, int index, const_dnnl_memory_desc_t layout,
                    bool is_output, bool kept) {
    const Functions& f = functions();
    Operand operand;
    operand.is_output = is_output;
    operand.given = memory(layout);
    const_dnnl_memory_desc_t wanted = f.primitive_desc_query_md(plan_.get(), query, index);
    if (!f.memory_desc_equal(layout, wanted)) {
        operand.used = memory(wanted);
        operand.bytes = f.memory_desc_get_size(wanted);
        dnnl_primitive_desc_t plan;
        const_dnnl_memory_desc_t from = is_output ? wanted : layout, to = is_output ? layout : wanted;
        check(f.reorder_primitive_desc_create(&plan, from, engine(), to, engine(), attributes()), "reorder");
        const Plan owned(plan);
        note_scratch(plan);
        dnnl_primitive_t copy;
        check(f.primitive_create(&copy, plan), "reorder");
        operand.copy.reset(copy);
        if (kept) operand.kept = number_of(layout) << 32 | number_of(wanted);
    }
    arguments_.push_back({argument, operand.used ? operand.used.get() : operand.given.get()});
    operands_.push_back(std::move(operand));
}

void Primitive::copy(const Operand& operand) {
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, operand.is_output ? operand.used.get() : operand.given.get()},
        {DNNL_ARG_TO, operand.is_output ? operand.given.get() : operand.used.get()},
        {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
    check(functions().primitive_execute(operand.copy.get(), stream(), scratch_ ? 3 : 2, arguments),
          "reorder");
}

void Primitive::run(KernelContext& ctx, std::initializer_list<void*> data) {
    const Functions& f = functions();
    if (scratch_) {
        check(f.memory_set_data_handle(scratch_.get(), ctx.scratch(&ctx, scratch_bytes_)), "scratch memory");
        if (arguments_.size() == operands_.size())
            arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratch_.get()});
    }
    std::shared_ptr<void> kept;  // the constant copy of an operand; at most one operand has such a copy
    auto pointer = data.begin();
    for (const Operand& operand : operands_) {
        void* const given = *pointer++;
        check(f.memory_set_data_handle(operand.given.get(), given), "operand");
        if (!operand.used) continue;
        if (operand.kept && has_constant_memory()) {
            kept = rearranged_constant(given, operand.kept, operand.bytes, [&](void* memory) {
                check(f.memory_set_data_handle(operand.used.get(), memory), "operand");
                copy(operand);
            });
            if (kept) {
                check(f.memory_set_data_handle(operand.used.get(), kept.get()), "operand");
                continue;
            }
        }
        check(f.memory_set_data_handle(operand.used.get(), ctx.scratch(&ctx, operand.bytes)), "operand");
        if (!operand.is_output) copy(operand);
    }
    check(f.primitive_execute(primitive_.get(), stream(), static_cast<int>(arguments_.size()),
                              arguments_.data()),
          "primitive");
    for (const Operand& operand : operands_) {
        if (operand.is_output && operand.used) copy(operand);
    }
}

}  // namespace rushlight::cpu::onednn

#endif
