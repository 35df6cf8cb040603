// A oneDNN primitive, with the copies of its operands to and from the layouts that it prefers. It can be run any
// number of times.
#pragma once

#if RUSHLIGHT_WITH_ONEDNN

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/onednn/library.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu::onednn {

/// The deleter and the owner type of oneDNN's handles.
struct Destroy {
    void operator()(dnnl_memory_desc_t h) const { functions().memory_desc_destroy(h); }
    void operator()(dnnl_memory_t h) const { functions().memory_destroy(h); }
    void operator()(dnnl_primitive_t h) const { functions().primitive_destroy(h); }
    void operator()(dnnl_primitive_desc_t h) const { functions().primitive_desc_destroy(h); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
using Layout = Owned<dnnl_memory_desc_t>;
using Plan = Owned<dnnl_primitive_desc_t>;

/// strided_layout returns a layout with the given strides. any_layout returns a layout for which the primitive may
/// choose the strides.
Layout strided_layout(int ndim, const dnnl_dim_t* sizes, const dnnl_dim_t* strides, dnnl_data_type_t type);
Layout any_layout(int ndim, const dnnl_dim_t* sizes, dnnl_data_type_t type);

class Primitive {
  public:
    explicit Primitive(Plan plan);

    /// Adds an operand that the caller stores in `layout`. `query` and `index` identify the operand in the plan, and
    /// `argument` identifies it when the primitive runs. If `kept` is true and the operand's memory is constant, the
    /// operand is converted to the primitive's layout only once: Note [Rearranged constants].
    void add_input(int argument, dnnl_query_t query, const Layout& layout, int index = 0, bool kept = false) {
        add(argument, query, index, layout.get(), false, kept);
    }
    void add_output(int argument, dnnl_query_t query, const Layout& layout, int index = 0) {
        add(argument, query, index, layout.get(), true, false);
    }

    /// Runs the primitive. `data` lists the operands' memory in the order in which they were added. No two threads may
    /// run the same primitive at the same time.
    void run(KernelContext& ctx, std::initializer_list<void*> data);

  private:
    struct Operand {
        Owned<dnnl_memory_t> given, used;  // `used` is null if the primitive uses the given layout
        Owned<dnnl_primitive_t> copy;
        size_t bytes = 0;
        uint64_t kept = 0;  // the number of the pair of layouts, or 0 if copied in every run
        bool is_output = false;
    };

    void add(int argument, dnnl_query_t query, int index, const_dnnl_memory_desc_t layout, bool is_output,
             bool kept);
    Owned<dnnl_memory_t> memory(const_dnnl_memory_desc_t layout);
    void note_scratch(dnnl_primitive_desc_t plan);
    void copy(const Operand& operand);

    Plan plan_;
    Owned<dnnl_primitive_t> primitive_;
    std::vector<Operand> operands_;
    std::vector<dnnl_exec_arg_t> arguments_;
    Owned<dnnl_memory_t> scratch_;
    size_t scratch_bytes_ = 0;
};

/// Returns the lock that is held while a primitive is created. A fork waits for this lock. If the process forked while
/// another thread was creating a primitive, the child process would hang, because oneDNN's own locks would remain
/// locked.
std::mutex& making_primitives();

/// A cache of the primitives that this thread used most recently. A lookup in oneDNN's own cache takes
/// microseconds.
template <class Key, class Hash>
class PrimitiveCache {
  public:
    /// Returns the primitive for `key`, which `make()` creates if it is not cached. Returns null if oneDNN has no such
    /// primitive.
    template <class Make>
    Primitive* get(const Key& key, Make&& make) {
        auto found = index_.find(key);
        if (found != index_.end()) {
            used_.splice(used_.begin(), used_, found->second);
            return used_.front().second.get();
        }
        {
            const std::lock_guard lock(making_primitives());
            used_.emplace_front(key, make());
        }
        index_.emplace(key, used_.begin());
        if (used_.size() > kCapacity) {
            index_.erase(used_.back().first);
            used_.pop_back();
        }
        return used_.front().second.get();
    }

  private:
    static constexpr size_t kCapacity = 512;
    using Entry = std::pair<Key, std::unique_ptr<Primitive>>;
    std::list<Entry> used_;
    std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace rushlight::cpu::onednn

#endif
