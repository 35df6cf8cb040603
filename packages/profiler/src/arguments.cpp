#include "arguments.h"

#include <algorithm>

namespace rushlight::profiler {
namespace {

class Writer {
  public:
    explicit Writer(Ring<uint64_t>& words)
        : words_(words),
          begin_(words.end()),
          end_(begin_),
          limit_(begin_ + std::min<uint64_t>(words.room(), 0xffff)) {}

    void word(uint64_t w) {
        if (end_ < limit_) words_[end_] = w;
        ++end_;
    }
    void head(ArgumentTag tag, uint64_t dtype, uint64_t count) {
        word(static_cast<uint64_t>(tag) << 56 | dtype << 48 | count);
    }
    void tensor(const Tensor& t) {
        if (!t.defined()) return head(ArgumentTag::Other, 0, 0);
        head(ArgumentTag::Tensor, static_cast<uint64_t>(t.dtype()), static_cast<uint64_t>(t.dim()));
        for (int64_t size : t.sizes()) word(static_cast<uint64_t>(size));
    }
    bool full() const { return end_ > limit_; }
    uint16_t publish() {
        if (full()) return 0;
        words_.publish(end_);
        return static_cast<uint16_t>(end_ - begin_);
    }

  private:
    Ring<uint64_t>& words_;
    uint64_t begin_, end_, limit_;
};

}  // namespace

uint16_t write_arguments(Ring<uint64_t>& words, const Stack& arguments) {
    Writer writer(words);
    writer.word(arguments.size());
    for (const Value& value : arguments) {
        if (auto* t = value.as<Tensor>()) writer.tensor(*t);
        else if (auto* list = value.as<std::vector<Tensor>>()) {
            writer.head(ArgumentTag::List, 0, list->size());
            for (const Tensor& t : *list) {
                writer.tensor(t);
                if (writer.full()) return 0;
            }
        } else writer.head(ArgumentTag::Other, 0, 0);
    }
    return writer.publish();
}

}  // namespace rushlight::profiler
