// reverse: the source backwards. It stands at the right end of its slots, so that its alignment is one
// anti-diagonal, slot 15 − i for query i, whatever the length; no fixed offset serves more than one query.
#pragma once

#include "framework/data/transcription.h"

namespace headlab {

class ReverseTask final : public TranscriptionTask {
 public:
  std::string name() const override { return "reverse"; }
  std::string shows() const override { return "cross attention as alignment: an anti-diagonal, no offset"; }
  /// Of h = 8 only the range over seeds is known, 0.995 to 1: its middle.
  std::vector<Rung> ladder() const override;
  /// One symbol of a sequence: 1 / the mean length.
  std::optional<double> best_fixed_offset() const override { return 1.0 / 11; }

 protected:
  Least least() const override;
  std::int64_t source_begin(std::int64_t length) const override;
  std::int64_t source_symbol(std::int64_t position, std::int64_t length) const override;
};

}  // namespace headlab
