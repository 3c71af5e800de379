#include "framework/data/senses.h"

#include <algorithm>

#include "framework/data/language.h"

namespace headlab {

namespace {

enum Kind : std::size_t { word, cue, filler, mark };

const Lexicon& lexicon() {
  static const Lexicon words{
      {"bank", "bat", "spring", "seal"},
      {"money",   "loan",  "account", "river", "shore",  "water", "ball",   "hit",
       "player",  "cave",  "wings",   "night", "coil",   "metal", "bounce", "season",
       "flowers", "april", "stamp",   "wax",   "letter", "sea",   "fish",   "ice"},
      {"the", "a", "we", "saw", "by", "it", "then", "and", "very", "there", "once", "still"},
      {"_"}};
  return words;
}

struct Sentence {
  std::vector<std::int64_t> words;
  struct Meaning {
    std::int64_t place, cue, label;
  };
  std::vector<Meaning> meanings;
};

Sentence compose(Random& random) {
  Sentence sentence;
  const std::int64_t length =
      SensesTask::shortest + random.below(SensesTask::context - SensesTask::shortest + 1);
  for (std::int64_t t = 0; t < length; ++t) sentence.words.push_back(lexicon().any(filler, random));
  const std::vector<std::int64_t> places = random.permutation(length);
  const std::vector<std::int64_t> chosen = random.permutation(SensesTask::ambiguous);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t label = SensesTask::senses * chosen[i] + random.below(SensesTask::senses);
    const Sentence::Meaning meaning{places[2 * i], places[2 * i + 1], label};
    sentence.words[static_cast<std::size_t>(meaning.place)] = chosen[i];
    sentence.words[static_cast<std::size_t>(meaning.cue)] =
        lexicon().first(cue) + SensesTask::cues * label + random.below(SensesTask::cues);
    sentence.meanings.push_back(meaning);
  }
  return sentence;
}

void put(Batch& batch, std::int64_t row, const Sentence& sentence) {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::uint8_t* valid = batch.valid.data<std::uint8_t>() + row * SensesTask::context;
  std::fill_n(x, SensesTask::context, lexicon().first(mark));
  std::copy(sentence.words.begin(), sentence.words.end(), x);
  std::fill_n(valid, std::ssize(sentence.words), std::uint8_t{1});
  for (const Sentence::Meaning& meaning : sentence.meanings) {
    example_of(batch.targets, row)[meaning.place] = meaning.label;
    example_of(batch.head_targets[0], row)[meaning.place] = meaning.cue;
  }
}

}  // namespace

Needs SensesTask::needs() const {
  Needs needs = language_needs(1, false);
  needs.streams = {{"word", lexicon().size(), language_embedding_std}};
  needs.readouts = {{"sense", ambiguous * senses}};
  needs.context = context;
  needs.causal = false;
  return needs;
}

Recipe SensesTask::recipe() const { return language_recipe(150); }

std::vector<HeadTarget> SensesTask::head_targets() const {
  return {{"cue", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> SensesTask::claims() const {
  return {{.says = "accuracy", .heads = {1, 4, 8, 16}, .lower = .99},
          {.says = "accuracy lost without any one head",
           .measure = Measure::worst_head,
           .heads = {8, 16},
           .upper = .20}};
}

void SensesTask::write(Batch& batch, std::int64_t row, Random& random) const {
  if (!batch.valid) batch.valid = Array::zeros(batch.inputs[0].shape(), DType::u8);
  put(batch, row, draw_sentence(random, false, compose));
}

void SensesTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed,
                                std::int64_t index) const {
  if (!batch.valid) batch.valid = Array::zeros(batch.inputs[0].shape(), DType::u8);
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  put(batch, row, draw_sentence(random, true, compose));
}

std::string SensesTask::spell(std::size_t, std::int64_t id) const { return lexicon().word(id); }

}  // namespace headlab
