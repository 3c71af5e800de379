#include "framework/data/task.h"

#include "framework/core/check.h"

namespace headlab {

Batch Task::blank(std::int64_t size) const {
  const Needs needs = this->needs();
  const bool encoder = needs.architecture == Architecture::encoder_decoder;
  Batch batch;
  for (std::size_t stream = 0; stream < needs.streams.size(); ++stream) {
    const bool source = encoder && stream == 0;
    const std::int64_t length = source ? needs.source_context : needs.context;
    batch.inputs.push_back(Array::zeros({size, length}, DType::i64));
  }
  if (needs.patch_width > 0) {
    const std::int64_t patches = needs.context - (needs.class_token ? 1 : 0);
    batch.inputs.push_back(Array::zeros({size, patches, needs.patch_width}));
  }
  if (encoder) batch.source_valid = Array::full({size, needs.source_context}, 1, DType::u8);
  const auto readouts = static_cast<std::int64_t>(needs.readouts.size());
  batch.targets = Array::full({size, needs.context, readouts}, unscored, DType::i64);
  for (const HeadTarget& target : head_targets()) {
    const bool source = target.site == AttentionSite::encoder;
    const std::int64_t queries = source ? needs.source_context : needs.context;
    batch.head_targets.push_back(Array::full({size, queries}, unscored, DType::i64));
  }
  for (std::size_t i = 0; i < probes().size(); ++i) {
    batch.probes.push_back(Array::full({size, needs.context}, unscored, DType::i64));
  }
  return batch;
}

Batch Task::batch(std::uint64_t seed, std::int64_t index, std::int64_t size, std::int64_t first) const {
  check(index >= 0 && size >= 0 && first >= 0, name(),
        "batch {} with rows from {}, size {}: all must be >= 0", index, first, size);
  Batch batch = blank(size);
  for (std::int64_t row = 0; row < size; ++row) {
    Random random(seed, Stream::data,
                  hash(static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(first + row)));
    write(batch, row, random);
  }
  return batch;
}

std::int64_t Task::held_out_size(HeldOut part) const {
  const std::int64_t all = held_out_sequences();
  if (part == HeldOut::all) return all;
  return part == HeldOut::choose ? all / 2 : all - all / 2;
}

Batch Task::held_out(std::uint64_t seed, std::int64_t first, std::int64_t size, HeldOut part) const {
  const std::int64_t sequences = held_out_size(part);
  check(first >= 0 && size >= 0 && first <= sequences && size <= sequences - first, name(),
        "held-out sequences {} to {} were asked for, there are {}", first, first + size, sequences);
  const std::int64_t skip = part == HeldOut::score ? held_out_size(HeldOut::choose) : 0;
  Batch batch = blank(size);
  for (std::int64_t row = 0; row < size; ++row) write_held_out(batch, row, seed, skip + first + row);
  return batch;
}

void Task::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed, std::int64_t index) const {
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  write(batch, row, random);
}

std::vector<std::string> Task::answer_names() const {
  std::vector<std::string> names;
  for (const Probe& probe : probes()) names.push_back(probe.name);
  if (!names.empty()) return names;
  for (const Needs::Readout& readout : needs().readouts) names.push_back(readout.name);
  return names;
}

std::string Task::token_text(std::size_t stream, std::int64_t id) const {
  const Needs needs = this->needs();
  check(stream < needs.streams.size(), name(), "stream {} was asked for, there are {}", stream,
        needs.streams.size());
  const std::int64_t vocabulary = needs.streams[stream].vocabulary;
  check(id >= 0 && id < vocabulary, name(), "token {} is not in 0 to {}", id, vocabulary - 1);
  return spell(stream, id);
}

std::vector<std::string> Task::labels(const Batch& batch, std::int64_t example, bool source) const {
  check(example >= 0 && example < batch.size(), name(), "example {} of a batch of {}", example, batch.size());
  const Needs needs = this->needs();
  const bool encoder = needs.architecture == Architecture::encoder_decoder;
  check(encoder || !source, name(), "has no source");
  if (needs.patch_width > 0) {
    std::vector<std::string> places;
    if (needs.class_token) places.emplace_back("class");
    for (std::int64_t i = 0; i < batch.inputs[0].dim(1); ++i) places.push_back(spell(0, i));
    return places;
  }
  const std::size_t first = encoder && !source ? 1 : 0;
  const std::size_t last = encoder ? first + 1 : batch.inputs.size();
  const std::int64_t length = batch.inputs[first].dim(1);
  std::vector<std::string> labels(static_cast<std::size_t>(length));
  for (std::size_t stream = first; stream < last; ++stream) {
    const std::int64_t* ids = batch.inputs[stream].data<std::int64_t>() + example * length;
    for (std::size_t t = 0; t < labels.size(); ++t) labels[t] += token_text(stream, ids[t]);
  }
  return labels;
}

}  // namespace headlab
