// Messages between two ranks: see Note [Messages] in region.h.
#pragma once

#include <list>
#include <map>

#include "collective/region.h"
#include "collective/sequence.h"

namespace rushlight {

// What precedes the elements of a message in a ring.
struct MessageHeader {
    int64_t bytes, elements;
    int32_t tag, dtype;
    char where[208];
};

// A rank's messages under way, and the thread that moves them.
class ProcessGroup::Messages {
  public:
    explicit Messages(ProcessGroup& group);
    void post(std::shared_ptr<CollectiveWork> work, int peer, int tag, bool sends);
    // Sends the posted messages, and makes receives that are still waiting raise an error.
    void close();

  private:
    using Work = std::shared_ptr<CollectiveWork>;
    struct Posted {
        Work work;
        int peer, tag;
        bool sends;
        std::chrono::steady_clock::time_point deadline;
    };
    struct Outgoing : Posted {
        explicit Outgoing(Posted posted);
        MessageHeader header;
        Sequence elements;
        int64_t sent = 0;  // bytes, the header included
    };
    // A message that arrives before its receive is called.
    struct Early {
        MessageHeader header;
        std::vector<char> bytes;
    };
    // The message to which the next bytes of a ring belong. It is written to a receive's tensor, to memory, or
    // discarded.
    struct Incoming {
        MessageHeader header;
        int64_t got = 0;  // bytes of elements
        std::unique_ptr<Posted> receive;
        std::vector<char> memory;
        std::exception_ptr error;  // why a receive does not take the message
    };

    void run();
    bool step();
    bool send_some(int to);
    bool receive_some(int from);
    bool begin_message(int from);
    bool take_early();
    bool is_wanted(int from) const;
    std::exception_ptr mismatch(const Posted& receive, int from, const MessageHeader& header) const;
    void finish(const Work& work, std::exception_ptr error);
    void check_peers();
    void fail_all(const std::exception_ptr& error);
    void tell(int rank);
    bool is_idle() const;
    template <class F>
    void each(F visit) const;

    ProcessGroup& group_;
    CollectiveRegion& region_;
    const int rank_, size_;
    std::mutex mutex_;
    std::vector<Posted> posted_;  // by other threads
    bool closing_ = false;        // both are guarded by the mutex
    // Of the thread only.
    std::vector<std::list<Outgoing>> outgoing_;                // by destination
    std::vector<std::unique_ptr<Incoming>> incoming_;          // by source
    std::vector<std::list<Early>> early_;                      // by source, in the order of their coming
    std::list<Posted> receives_;
    std::thread thread_;
};

}  // namespace rushlight
