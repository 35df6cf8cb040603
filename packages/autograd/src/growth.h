// Graphs that grow from iteration to iteration: Note [Graphs that grow].
#pragma once

#include "rushlight/autograd/growth.h"
#include "rushlight/autograd/node.h"

namespace rushlight::autograd {

class Growth {
  public:
    /// Called when an operator records an edge to a node that a backward pass has used up.
    static void extended(Node* node);
    /// Called when a pass has used up the graph behind `root`, and objects other than the output tensor still refer
    /// to `root`.
    static void still_held(Node* root);
    /// Called when a node that extended() or still_held() has received is destroyed.
    static void forget(Node* node) noexcept;
    /// Guards the counts.
    static std::mutex& mutex();

  private:
    static void watch(Node* node, Site site, bool extended);
};

}  // namespace rushlight::autograd
