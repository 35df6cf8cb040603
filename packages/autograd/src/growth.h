// Graphs that grow from iteration to iteration: Note [Graphs that grow].
#pragma once

#include "rushlight/autograd/growth.h"
#include "rushlight/autograd/node.h"

namespace rushlight::autograd {

class Growth {
  public:
    /// An operator records an edge to a node that was used up.
    static void extended(Node* node);
    /// A pass has used up the graph behind a root, to which others than its tensor still refer.
    static void still_held(Node* root);
    /// From the end of a node that one of the two functions received.
    static void forget(Node* node) noexcept;
    /// Guards what is counted.
    static std::mutex& mutex();

  private:
    static void watch(Node* node, Site site, bool extended);
};

}  // namespace rushlight::autograd
