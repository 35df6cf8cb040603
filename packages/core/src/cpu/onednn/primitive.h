// A oneDNN primitive with the copies into and out of the layouts that it prefers, ready to run again and
// again.
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

/// Owners of oneDNN's handles.
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

/// A layout with given strides, or one that a primitive may choose.
Layout strided_layout(int ndim, const dnnl_dim_t* sizes, const dnnl_dim_t* strides);
Layout any_layout(int ndim, const dnnl_dim_t* sizes);

class Primitive {
  public:
    explicit Primitive(Plan plan);

    /// Adds an operand that the caller holds in `layout`; `query` and `index` name it in the plan, `argument`
    /// in the execution. Of an operand that may be `kept`, a copy in the primitive's layout is made once where its memory is
    /// constant: Note [Rearranged constants].
    void add_input(int argument, dnnl_query_t query, const Layout& layout, int index = 0, bool kept = false) {
        add(argument, query, index, layout.get(), false, kept);
    }
    void add_output(int argument, dnnl_query_t query, const Layout& layout, int index = 0) {
        add(argument, query, index, layout.get(), true, false);
    }

    /// Runs with the operands' data in the order in which they were added. One thread at a time.
    void run(KernelContext& ctx, std::initializer_list<void*> data);

  private:
    struct Operand {
        Owned<dnnl_memory_t> given, used;  // `used` is null where the primitive reads the given layout
        Owned<dnnl_primitive_t> copy;
        size_t bytes = 0;
        uint64_t kept = 0;  // the number of the pair of layouts; 0: copied in every run
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

/// The lock under which primitives are made. Forks wait for it: a child that is forked while another thread makes a
/// primitive would find oneDNN's own locks taken, and hang.
std::mutex& making_primitives();

/// The primitives that this thread used last, by shape: fetching one from oneDNN's own cache takes
/// microseconds.
template <class Key, class Hash>
class PrimitiveCache {
  public:
    /// The primitive for `key`, made by `make()` if need be; null when oneDNN has none.
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
