// Small objects of one size, recycled by each thread, so that the header of a tensor costs no malloc.
#pragma once

#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RL_NO_POOLS  // a sanitizer can detect errors only if each object is allocated separately
#endif

namespace rushlight {

template <size_t kSize, size_t kAlign>
class ObjectPool {
  public:
    static void* allocate() {
#ifndef RL_NO_POOLS
        if (Node* node = head_) [[likely]] {
            head_ = node->next;
            --count_;
            return node;
        }
#endif
        return ::operator new(kSize, std::align_val_t{kAlign});
    }
    static void release(void* p) noexcept {
#ifndef RL_NO_POOLS
        if (count_ < kKeep && armed()) [[likely]] {
            auto* node = static_cast<Node*>(p);
            node->next = head_;
            head_ = node;
            ++count_;
            return;
        }
#endif
        ::operator delete(p, kSize, std::align_val_t{kAlign});
    }

  private:
    struct Node {
        Node* next;
    };
    static constexpr int kKeep = 256;

    // When the thread ends, its list is freed. Objects released after that are returned directly to the heap.
    struct Drain {
        ~Drain() {
            state_ = 2;
            while (Node* node = head_) {
                head_ = node->next;
                ::operator delete(node, kSize, std::align_val_t{kAlign});
            }
        }
    };
    static bool armed() {
        if (state_ == 1) [[likely]]
            return true;
        if (state_ == 2) return false;
        static thread_local Drain drain;
        (void)&drain;
        state_ = 1;
        return true;
    }

    static inline constinit thread_local Node* head_ __attribute__((tls_model("initial-exec"))) = nullptr;
    static inline constinit thread_local int count_ __attribute__((tls_model("initial-exec"))) = 0;
    static inline constinit thread_local int state_ __attribute__((tls_model("initial-exec"))) = 0;
};

}  // namespace rushlight
