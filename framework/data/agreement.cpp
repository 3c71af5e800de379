#include "framework/data/agreement.h"

#include <algorithm>

#include "framework/data/language.h"

namespace headlab {

namespace {

// In pairs: singular, plural. Of forms of "be": present, then past.
enum Kind : std::size_t {
  noun,
  determiner,
  adjective,
  preposition,
  that,
  verb,
  be,
  participle,
  past_time,
  present_time,
  adverb,
  mark
};
enum Mark : std::int64_t { start, stop, comma, pad };

const Lexicon& lexicon() {
  static const Lexicon words{{"cat", "cats", "dog", "dogs", "horse", "horses", "girl", "girls", "boy", "boys",
                              "teacher", "teachers", "bird", "birds", "farmer", "farmers"},
                             {"the", "my"},
                             {"small", "old", "happy", "brown"},
                             {"near", "behind", "with", "beside"},
                             {"that"},
                             {"sees", "see", "likes", "like", "follows", "follow", "helps", "help"},
                             {"is", "are", "was", "were"},
                             {"sleeping", "running", "eating", "singing", "waiting", "playing"},
                             {"yesterday", "then", "earlier"},
                             {"today", "now", "currently"},
                             {"quietly", "happily", "again"},
                             {">", ".", ",", "_"}};
  return words;
}
std::int64_t id_of(Mark m) { return lexicon().first(mark) + m; }

struct Sentence {
  std::vector<std::int64_t> words;
  std::int64_t subject = 0, time = 0, verb = 0;  // positions
  bool plural = false, past = false;
  bool hard = false;
};

class Composer {
 public:
  explicit Composer(Random& random) : random_(random) {}

  Sentence compose() {
    say(id_of(start));
    sentence_.past = random_.bernoulli(0.5);
    const bool lead = random_.bernoulli(0.4);
    const bool time_first = lead && random_.bernoulli(0.5);
    if (time_first) say_time();
    if (lead) {
      say(preposition);
      say_noun_phrase(0, random_.bernoulli(0.5));
      say(id_of(comma));
    }
    if (!time_first) say_time();
    sentence_.plural = random_.bernoulli(0.5);
    say_noun_phrase(0.3, sentence_.plural);
    sentence_.subject = std::ssize(sentence_.words) - 1;
    say_modifiers();
    sentence_.verb = std::ssize(sentence_.words);
    say(lexicon().first(be) + (sentence_.past ? 2 : 0) + (sentence_.plural ? 1 : 0));
    say(participle);
    if (random_.bernoulli(0.3)) say(adverb);
    say(id_of(stop));
    return std::move(sentence_);
  }

 private:
  void say(std::int64_t word) { sentence_.words.push_back(word); }
  void say(Kind kind) { say(lexicon().any(kind, random_)); }
  void say_time() {
    sentence_.time = std::ssize(sentence_.words);
    say(sentence_.past ? past_time : present_time);
  }
  void say_pair(Kind kind, bool plural) {
    say(lexicon().first(kind) + 2 * random_.below(lexicon().count(kind) / 2) + (plural ? 1 : 0));
  }
  void say_noun_phrase(double adjectives, bool plural) {
    say(determiner);
    if (random_.bernoulli(adjectives)) say(adjective);
    say_pair(noun, plural);
  }
  /// The number of a noun in a modifier.
  bool another_number() {
    const bool plural = random_.bernoulli(0.5);
    if (plural != sentence_.plural) sentence_.hard = true;
    return plural;
  }
  void say_p() {
    say(preposition);
    say_noun_phrase(0.15, another_number());
  }
  void say_r() {
    say(that);
    const bool plural = another_number();
    if (random_.bernoulli(0.5)) {
      say_pair(verb, sentence_.plural);
      say_noun_phrase(0, plural);
    } else {
      say_noun_phrase(0, plural);
      say_pair(verb, plural);
    }
  }
  void say_modifiers() {
    const double u = random_.uniform();
    if (u < 0.2) return;
    if (u < 0.65) {
      say_p();
      if (u >= 0.5) say_p();
    } else {
      say_r();
      if (u >= 0.85) say_p();
    }
  }

  Random& random_;
  Sentence sentence_;
};

void put(Batch& batch, std::int64_t row, const Sentence& sentence) {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::fill_n(x, AgreementTask::context, id_of(pad));
  for (std::int64_t t = 0; t + 1 < std::ssize(sentence.words); ++t) {
    x[t] = sentence.words[static_cast<std::size_t>(t)];
    answers[t] = sentence.words[static_cast<std::size_t>(t) + 1];
  }
  const std::int64_t query = sentence.verb - 1;
  example_of(batch.head_targets[0], row)[query] = sentence.subject;
  example_of(batch.head_targets[1], row)[query] = sentence.time;
  if (sentence.hard) example_of(batch.probes[0], row)[query] = sentence.plural ? 1 : 0;
  example_of(batch.probes[1], row)[query] = sentence.past ? 1 : 0;
}

Sentence drawn(Random& random, bool held_out) {
  return draw_sentence(random, held_out, [](Random& r) { return Composer(r).compose(); });
}

}  // namespace

Needs AgreementTask::needs() const {
  Needs needs = language_needs(2, true);
  needs.streams = {{"word", tokens, language_embedding_std}};
  needs.readouts = {{"next", tokens}};
  needs.context = context;
  return needs;
}

Recipe AgreementTask::recipe() const { return language_recipe(500); }

std::vector<Probe> AgreementTask::probes() const {
  const std::int64_t is = lexicon().first(be);
  const std::vector<std::int64_t> forms{is, is + 1, is + 2, is + 3};
  return {{"number", 0, forms, {0, 1, 0, 1}}, {"tense", 0, forms, {0, 0, 1, 1}}};
}

std::vector<HeadTarget> AgreementTask::head_targets() const {
  return {{"subject", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"time", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

std::vector<Rung> AgreementTask::ladder() const {
  return {{1, 0.787}, {2, 0.911}, {4, 1.0}, {8, 1.0}, {16, 1.0}};
}

std::vector<std::int64_t> AgreementTask::delimiters() const { return {id_of(stop), id_of(comma)}; }
std::optional<std::int64_t> AgreementTask::start_token() const { return id_of(start); }

std::vector<Claim> AgreementTask::claims() const {
  return {{.says = "number, hard set", .heads = {1}, .lower = .45, .upper = .95},
          {.says = "number, hard set", .heads = {4, 8, 16}, .lower = .97},
          {.says = "looks at the subject, best head",
           .measure = Measure::relation,
           .heads = {4, 8, 16},
           .lower = .50},
          {.says = "number without the heads on the subject",
           .measure = Measure::without_set,
           .heads = {4, 8},
           .upper = .80,
           .answer = 0,
           .threshold = .3},
          {.says = "tense without the heads on the subject",
           .measure = Measure::without_set,
           .heads = {4, 8},
           .lower = .93,
           .answer = 1,
           .threshold = .3},
          {.says = "tense without the heads on the time",
           .measure = Measure::without_set,
           .heads = {4, 8},
           .upper = .85,
           .target = 1,
           .answer = 1,
           .threshold = .3}};
}

void AgreementTask::write(Batch& batch, std::int64_t row, Random& random) const {
  put(batch, row, drawn(random, false));
}

void AgreementTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed,
                                   std::int64_t index) const {
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  put(batch, row, drawn(random, true));
}

std::string AgreementTask::spell(std::size_t, std::int64_t id) const { return lexicon().word(id); }

}  // namespace headlab
