// Tensors as one sequence of bytes, and the reduction of chunks of such sequences.
#pragma once

#include <cstring>
#include <vector>

#include "rushlight/collective.h"

namespace rushlight {

// A list of contiguous tensors, treated as one sequence of bytes.
class Sequence {
  public:
    explicit Sequence(TensorList tensors) {
        for (const Tensor& t : tensors)
            if (t.numel()) {
                auto n = t.numel() * static_cast<int64_t>(itemsize(t.dtype()));
                parts_.push_back({static_cast<char*>(t.impl()->data()), bytes_, n});
                bytes_ += n;
            }
    }
    int64_t bytes() const { return bytes_; }

    // The address of a range if it lies in one tensor, else null.
    char* within(int64_t offset, int64_t n) {
        if (n == 0) return nullptr;
        const Part& p = seek(offset);
        return offset + n <= p.start + p.bytes ? p.data + (offset - p.start) : nullptr;
    }
    void read(int64_t offset, int64_t n, char* to) {
        walk(offset, n, [&](char* part, int64_t bytes) {
            std::memcpy(to, part, static_cast<size_t>(bytes));
            to += bytes;
        });
    }
    void write(int64_t offset, int64_t n, const char* from) {
        walk(offset, n, [&](char* part, int64_t bytes) {
            std::memcpy(part, from, static_cast<size_t>(bytes));
            from += bytes;
        });
    }

    // Calls a function with each part of a range and the part's size.
    template <class F>
    void walk(int64_t offset, int64_t n, F f) {
        while (n > 0) {
            const Part& p = seek(offset);
            const int64_t bytes = std::min(n, p.start + p.bytes - offset);
            f(p.data + (offset - p.start), bytes);
            offset += bytes;
            n -= bytes;
        }
    }

  private:
    struct Part {
        char* data;
        int64_t start, bytes;
    };
    // The offsets of successive chunks increase, so the search continues where the last one ended.
    const Part& seek(int64_t offset) {
        if (at_ >= parts_.size() || offset < parts_[at_].start) at_ = 0;
        while (offset >= parts_[at_].start + parts_[at_].bytes) ++at_;
        return parts_[at_];
    }
    std::vector<Part> parts_;
    size_t at_ = 0;
    int64_t bytes_ = 0;
};

// Raises TypeError if the operation does not support that dtype.
void check_reducible(const char* who, ReduceOp op, DType dtype);

// Combines the first `n` elements of all `parts`, in the order of the list, and writes the results to `to`, which must
// not be one of the parts.
void reduce_parts(ReduceOp op, DType dtype, int64_t n, const std::vector<const char*>& parts, char* to);

}  // namespace rushlight
