// Kinds of answers, so that it can be told which of them need a head.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlab {

class Task;

/// The kind of each class of a task's only read-out. No names: the task's answers are not of several kinds.
struct TokenKinds {
  std::vector<std::string> names;
  std::vector<std::size_t> of_class;
};

/// Of a text: small letters, capitals, digits, blanks, line ends, other signs; those that the vocabulary has.
/// Bytes of longer characters and letters beyond ASCII count as small letters. Other tasks have none: their
/// read-outs tell kinds apart.
TokenKinds token_kinds(const Task& task);

}  // namespace headlab
