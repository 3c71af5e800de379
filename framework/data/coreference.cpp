#include "framework/data/coreference.h"

#include <algorithm>
#include <array>

#include "framework/data/language.h"

namespace headlab {

namespace {

enum Kind : std::size_t { noun, fitting, verb, function };
enum Function : std::int64_t { the, did, no, because, mask, looked, too, comma, so, colon, stop };

const Lexicon& lexicon() {
  static const Lexicon words{
      {"cat",  "cats",  "dog",   "dogs",    "river",  "rivers",  "road",  "roads",
       "soup", "soups", "cake",  "cakes",   "engine", "engines", "robot", "robots",
       "song", "songs", "story", "stories", "coat",   "coats",   "shirt", "shirts",
       "rock", "rocks", "box",   "boxes",   "cloud",  "clouds",  "storm", "storms"},
      {"tired", "hungry", "wide", "flooded", "salty", "hot", "broken", "noisy", "boring", "sad", "tight",
       "torn", "heavy", "hard", "dark", "wet"},
      {"pass", "follow", "touch", "reach"},
      {"the", "did", "not", "because", "[mask]", "looked", "too", ",", "so", ":", "."}};
  return words;
}
std::int64_t id_of(Function f) { return lexicon().first(function) + f; }

struct Sentence {
  std::vector<std::int64_t> words;
  std::int64_t mask = 0, antecedent = 0, wrong = 0, property = 0;  // positions
  bool plural = false, differ = false;
};

Sentence compose(Random& random) {
  const std::int64_t class0 = random.below(CoreferenceTask::classes);
  const std::int64_t class1 =
      (class0 + 1 + random.below(CoreferenceTask::classes - 1)) % CoreferenceTask::classes;
  const std::int64_t n0 = 4 * class0 + random.below(4), n1 = 4 * class1 + random.below(4);
  const bool first = random.bernoulli(0.5);  // the property fits n0
  const std::int64_t p = lexicon().first(fitting) + 2 * (first ? class0 : class1) + random.below(2);
  const std::array main{id_of(the), n0, id_of(did), id_of(no), lexicon().any(verb, random), id_of(the), n1};

  Sentence sentence;
  std::vector<std::int64_t>& words = sentence.words;
  const auto say = [&](std::initializer_list<std::int64_t> more) { words.insert(words.end(), more); };
  const auto say_main = [&] { words.insert(words.end(), main.begin(), main.end()); };
  switch (random.below(4)) {
    case 0:
      say_main();
      say({id_of(because), id_of(mask), id_of(looked), id_of(too), p, id_of(stop)});
      break;
    case 1:
      say({id_of(because), id_of(mask), id_of(looked), id_of(too), p, id_of(comma)});
      say_main();
      break;
    case 2:
      say({id_of(too), p, id_of(mask), id_of(looked), id_of(comma), id_of(so)});
      say_main();
      break;
    default:
      say_main();
      say({id_of(colon), id_of(too), p, id_of(mask), id_of(looked), id_of(stop)});
  }
  const auto place = [&](std::int64_t word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  sentence.mask = place(id_of(mask));
  sentence.property = place(p);
  sentence.antecedent = place(first ? n0 : n1);
  sentence.wrong = place(first ? n1 : n0);
  sentence.plural = (first ? n0 : n1) % 2 == 1;
  sentence.differ = n0 % 2 != n1 % 2;
  return sentence;
}

void put(Batch& batch, std::int64_t row, const Sentence& sentence) {
  std::copy(sentence.words.begin(), sentence.words.end(), example_of(batch.inputs[0], row));
  const std::int64_t answer = sentence.plural ? 1 : 0;
  example_of(batch.targets, row)[sentence.mask] = answer;
  if (sentence.differ) example_of(batch.probes[0], row)[sentence.mask] = answer;
  const std::array keys{sentence.antecedent, sentence.wrong, sentence.property};
  for (std::size_t i = 0; i < keys.size(); ++i)
    example_of(batch.head_targets[i], row)[sentence.mask] = keys[i];
}

}  // namespace

Needs CoreferenceTask::needs() const {
  Needs needs = language_needs(2, false);
  needs.streams = {{"word", lexicon().size(), language_embedding_std}};
  needs.readouts = {{"pronoun", 2}};
  needs.context = context;
  needs.causal = false;
  return needs;
}

Recipe CoreferenceTask::recipe() const { return language_recipe(700); }

std::vector<Probe> CoreferenceTask::probes() const { return {{"it or they", 0, {0, 1}, {0, 1}}}; }

std::vector<HeadTarget> CoreferenceTask::head_targets() const {
  return {{"antecedent", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"wrong noun", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"property", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> CoreferenceTask::claims() const {
  // About one seed in twelve is still at three quarters after 700 steps of four heads.
  return {{.says = "accuracy where the nouns differ", .heads = {4}, .lower = .96, .seeds = .8},
          {.says = "accuracy where the nouns differ", .heads = {8, 16}, .lower = .96},
          {.says = "weight on the antecedent less the wrong noun",
           .measure = Measure::mass_above_other,
           .heads = {4, 8, 16},
           .upper = .15,
           .target = antecedent,
           .other = wrong_noun},
          {.says = "weight on the antecedent, best head",
           .measure = Measure::mass,
           .heads = {4, 8, 16},
           .upper = .70,
           .target = antecedent}};
}

void CoreferenceTask::write(Batch& batch, std::int64_t row, Random& random) const {
  put(batch, row, draw_sentence(random, false, compose));
}

void CoreferenceTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed,
                                     std::int64_t index) const {
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  put(batch, row, draw_sentence(random, true, compose));
}

std::string CoreferenceTask::spell(std::size_t, std::int64_t id) const { return lexicon().word(id); }

}  // namespace headlab
