// Messages between two ranks: see Note [Messages] in region.h.
#pragma once

#include <list>
#include <map>

#include "collective/region.h"
#include "collective/sequence.h"

namespace rushlight {

// The header of a message, which precedes its elements in a ring.
struct MessageHeader {
    int64_t bytes, elements;
    int32_t tag, dtype;
    char where[208];
};

// The messages of one rank that are under way, and the thread that transfers them.
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
        int64_t sent = 0;  // bytes, including the header
    };
    // A message that arrives before its receive is posted.
    struct Early {
        MessageHeader header;
        std::vector<char> bytes;
    };
    // The message to which the next bytes of a ring belong. Its elements are written to the tensor of a receive or to
    // memory, or discarded.
    struct Incoming {
        MessageHeader header;
        int64_t got = 0;  // bytes of elements
        std::unique_ptr<Posted> receive;
        std::vector<char> memory;
        std::exception_ptr error;  // the reason for which the receive cannot take the message
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
    std::vector<Posted> posted_;  // posted by other threads; guarded by the mutex
    bool closing_ = false;        // guarded by the mutex
    // The members below are used only by the thread.
    std::vector<std::list<Outgoing>> outgoing_;                // indexed by destination
    std::vector<std::unique_ptr<Incoming>> incoming_;          // by source
    std::vector<std::list<Early>> early_;                      // by source, in the order of arrival
    std::list<Posted> receives_;
    std::thread thread_;
};

}  // namespace rushlight
