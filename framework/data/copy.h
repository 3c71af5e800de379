// copy: the source as it stands, from the first slot on. Its alignment is the diagonal: query i looks at slot
// i.
#pragma once

#include "framework/data/transcription.h"

namespace headlab {

class CopyTask final : public TranscriptionTask {
 public:
  std::string name() const override { return "copy"; }
  std::string shows() const override { return "cross attention as alignment: a diagonal; redundant heads"; }
  std::vector<Rung> ladder() const override;
  /// Offset 0 is always right.
  std::optional<double> best_fixed_offset() const override { return 1.0; }

 protected:
  Least least() const override;
  std::int64_t source_begin(std::int64_t length) const override;
  std::int64_t source_symbol(std::int64_t position, std::int64_t length) const override;
};

}  // namespace headlab
