// Arrays, and a context for calls of kernels, for tests that do not need tensors.
#pragma once

#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "rushlight/kernel.h"
#include "rushlight/parallel.h"

namespace check {

template <class T> struct DTypeOf;
template <> struct DTypeOf<bool> {
    static constexpr auto value = rushlight::DType::Bool;
};
template <> struct DTypeOf<float> {
    static constexpr auto value = rushlight::DType::Float32;
};
template <> struct DTypeOf<double> {
    static constexpr auto value = rushlight::DType::Float64;
};
template <> struct DTypeOf<int32_t> {
    static constexpr auto value = rushlight::DType::Int32;
};
template <> struct DTypeOf<int64_t> {
    static constexpr auto value = rushlight::DType::Int64;
};

/// A strided array that owns its memory.
template <class T>
class Array {
  public:
    explicit Array(std::vector<int64_t> sizes) : sizes_(std::move(sizes)), strides_(sizes_.size()) {
        int64_t step = 1;
        for (size_t d = sizes_.size(); d-- > 0;) {
            strides_[d] = step;
            step *= sizes_[d];
        }
        numel_ = step;
        data_.reset(new T[static_cast<size_t>(step)]());
    }

    /// Returns the same memory with two dimensions exchanged.
    Array transposed(size_t a, size_t b) const {
        Array other = *this;
        std::swap(other.sizes_[a], other.sizes_[b]);
        std::swap(other.strides_[a], other.strides_[b]);
        return other;
    }

    rushlight::View view() const {
        int64_t step = 1;
        bool contiguous = true;
        for (size_t d = sizes_.size(); d-- > 0;) {
            contiguous = contiguous && (sizes_[d] == 1 || strides_[d] == step);
            step *= sizes_[d];
        }
        return {
            data_.get(),       sizes_.data(), strides_.data(), numel_, static_cast<int32_t>(sizes_.size()),
            DTypeOf<T>::value, contiguous};
    }
    T* data() const { return data_.get(); }
    int64_t numel() const { return numel_; }
    int64_t size(size_t d) const { return sizes_[d]; }

    template <class... I>
    T& operator()(I... index) const {
        int64_t offset = 0;
        size_t d = 0;
        ((offset += index * strides_[d++]), ...);
        return data_[static_cast<size_t>(offset)];
    }

  private:
    std::vector<int64_t> sizes_, strides_;
    int64_t numel_;
    std::shared_ptr<T[]> data_;
};

inline std::mt19937 generator{1};

/// Returns random numbers around zero, in memory order.
template <class T>
Array<T> random(std::vector<int64_t> sizes) {
    Array<T> a(std::move(sizes));
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < a.numel(); ++i) a.data()[i] = static_cast<T>(normal(generator));
    return a;
}

inline rushlight::View none() { return {nullptr, nullptr, nullptr, 0, -1, rushlight::DType::Float32, 0}; }

/// A context that allocates each scratch buffer separately, so that a sanitizer detects every access beyond its end.
class Context {
  public:
    Context() : context_{} {
        context_.scratch = [](rushlight::KernelContext* c, size_t nbytes) {
            auto* self = static_cast<Context*>(c->impl);
            void* block = std::aligned_alloc(64, (nbytes + 63) / 64 * 64 + 64);
            self->blocks_.emplace_back(block, &std::free);
            return block;
        };
        context_.impl = this;
    }
    operator rushlight::KernelContext&() { return context_; }

  private:
    rushlight::KernelContext context_;
    std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
};

/// Sets the number of threads within a scope.
struct Threads {
    explicit Threads(int n) : former(rushlight::num_threads()) { rushlight::set_num_threads(n); }
    ~Threads() { rushlight::set_num_threads(former); }
    int former;
};

/// Calls run(), which returns an Array, with one, two and three threads, and returns whether all bits agree.
template <class Run>
bool same_for_all_threads(Run&& run) {
    auto first = [&] {
        Threads one(1);
        return run();
    }();
    for (int n : {2, 3}) {
        Threads threads(n);
        auto other = run();
        for (int64_t i = 0; i < first.numel(); ++i) {
            if (first.data()[i] != other.data()[i]) return false;
        }
    }
    return true;
}

}  // namespace check
