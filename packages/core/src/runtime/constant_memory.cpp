#include "runtime/constant_memory.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <unordered_map>

#include "rushlight/constant_memory.h"

namespace rushlight {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Constant {
    int owners = 0;
    std::unordered_map<uint64_t, std::shared_ptr<void>> copies;  // by layout
};

struct Constants {
    std::mutex mutex;
    std::unordered_map<const void*, Constant> by_address;
    std::atomic<size_t> count{0};
};

// Never destroyed, because ConstantMemory objects may exist until the process ends.
Constants& constants() {
    static Constants* const made = [] {
        ::pthread_atfork([] { constants().mutex.lock(); }, [] { constants().mutex.unlock(); },
                         [] { constants().mutex.unlock(); });
        return new Constants();
    }();
    return *made;
}

}  // namespace

ConstantMemory::ConstantMemory(const void* data) : data_(data) {
    Constants& all = constants();
    const std::lock_guard lock(all.mutex);
    ++all.by_address[data].owners;
    all.count.store(all.by_address.size(), std::memory_order_relaxed);
}

ConstantMemory::~ConstantMemory() {
    Constants& all = constants();
    Constant freed;  // destroyed after the lock is released
    const std::lock_guard lock(all.mutex);
    const auto at = all.by_address.find(data_);
    if (--at->second.owners > 0) return;
    freed = std::move(at->second);
    all.by_address.erase(at);
    all.count.store(all.by_address.size(), std::memory_order_relaxed);
}

bool has_constant_memory() { return constants().count.load(std::memory_order_relaxed) != 0; }

std::shared_ptr<void> rearranged_constant(const void* data, uint64_t layout, size_t nbytes,
                                          const std::function<void(void*)>& make) {
    Constants& all = constants();
    {
        const std::lock_guard lock(all.mutex);
        const auto at = all.by_address.find(data);
        if (at == all.by_address.end()) return nullptr;
        const auto copy = at->second.copies.find(layout);
        if (copy != at->second.copies.end()) return copy->second;
    }
    std::shared_ptr<void> made(::operator new(nbytes, kAlignment),
                               [](void* memory) { ::operator delete(memory, kAlignment); });
    make(made.get());
    const std::lock_guard lock(all.mutex);
    const auto at = all.by_address.find(data);
    if (at == all.by_address.end()) return made;
    return at->second.copies.emplace(layout, std::move(made)).first->second;
}

}  // namespace rushlight
