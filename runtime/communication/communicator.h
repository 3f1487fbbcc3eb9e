// Communication between the ranks of a job, whatever carries it.
//
// A plan's communicator joins ranks along one axis; each of them has one `Communicator` for it. A
// communication is prepared once, when memory may still be allocated, and then issued any number
// of times as an `Operation`. An operation never waits: `advance` does what its peers allow at the
// moment. Whoever waits (RankCommunicators::complete) can so carry several operations at once,
// which the entries of a group need, and looks after lost peers in one place.
//
// Sums are added in the order of the members, ((m0 + m1) + m2) + …, for every element, so their
// bits are the same for every transport and for every size of its pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reduction.h"

namespace sgtc::runtime {

/// Contiguous memory. A message is a list of parts, as if they were joined.
struct Part {
  unsigned char* data = nullptr;
  int64_t bytes = 0;
};

enum class CommunicationKind { send, receive, all_reduce, reduce_scatter, all_gather, broadcast };

/// One communication as one member takes part in it. The parts of inputs and outputs may be the
/// same bytes, and stay where they are as long as the operation exists.
///
/// send, receive    `inputs` or `outputs`; the message is cut into parts as each side likes
/// all_reduce       outputs[i] becomes the reduction of all members' inputs[i], of equal size
/// reduce_scatter   inputs[i] is (number of members) times outputs[i], which becomes the
///                  reduction of the piece that is this member's in order
/// all_gather       outputs[i] is (number of members) times inputs[i]: the pieces in order
/// broadcast        outputs[i] becomes the root's inputs[i], of equal size
struct CommunicationRequest {
  CommunicationKind kind = CommunicationKind::send;
  int64_t peer = -1;         // send, receive: the other member; broadcast: the root
  std::string dtype = "u8";  // matters for reductions; parts are whole elements
  Reduction reduction = Reduction::sum;
  std::vector<Part> inputs;
  std::vector<Part> outputs;
};

/// A prepared communication.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Issues it. All members issue the operations of a communicator in the same order.
  virtual void start() = 0;
  /// Does what can be done now; true once everything is done. A receive is done when its bytes are
  /// there, a send when the parts may be overwritten.
  virtual bool advance() = 0;
  /// True if peers cannot wake this rank up: `advance` itself then waits a little for progress.
  virtual bool polls() const { return false; }
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  /// This rank's index among the members and their number.
  virtual int64_t member() const = 0;
  virtual int64_t size() const = 0;
  /// Dies for a request that contradicts itself. The communicator must outlive the operation.
  virtual std::unique_ptr<Operation> prepare(const CommunicationRequest& request) = 0;
};

/// Dies unless the request is one that `size` members can make: its peer exists, sizes of inputs
/// and outputs fit each other, and its elements can be reduced. `name` is the communicator's.
void check_request(const CommunicationRequest& request, int64_t size, const std::string& name);

}  // namespace sgtc::runtime
