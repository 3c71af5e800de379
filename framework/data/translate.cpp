#include "framework/data/translate.h"

#include <algorithm>

#include "framework/data/language.h"

namespace headlab {

namespace {

// Nouns in pairs: singular, plural. Both languages have their kinds in this order, word i of one is word i of
// the other; the target's verbs come in pairs for the subject's number.
enum Kind : std::size_t { noun, adjective, determiner, time_word, adverb, verb, mark };
enum SourceMark : std::int64_t { source_end, source_pad, source_start };
enum TargetMark : std::int64_t { ga, wo, target_start, target_end, target_pad };

const Lexicon& source() {
  static const Lexicon words{{"dog",  "dogs",  "cat",   "cats",     "bird",  "birds",  "man",  "men",
                              "king", "kings", "child", "children", "tree",  "trees",  "book", "books",
                              "ship", "ships", "star",  "stars",    "house", "houses", "song", "songs"},
                             {"red", "big", "old", "new", "good", "dark"},
                             {"the", "a"},
                             {"today", "tonight", "soon"},
                             {"slowly", "gladly", "often"},
                             {"sees", "finds", "takes", "likes", "makes", "hears", "shows", "moves"},
                             {"</s>", "_", "<s>"}};
  return words;
}

const Lexicon& target() {
  static const Lexicon words{
      {"inu", "inura", "neko", "nekora", "tori", "torira", "hito", "hitora", "oo", "oora", "ko",  "kora",
       "ki",  "kira",  "hon",  "honra",  "fune", "funera", "hosi", "hosira", "ie", "iera", "uta", "utara"},
      {"akai", "ookii", "furui", "sinai", "yoi", "kurai"},
      {"sono", "aru"},
      {"kyou", "konya", "sugu"},
      {"yukkuri", "yorokonde", "yoku"},
      {"miru", "mirura", "sagasu", "sagasura", "toru", "torura", "konomu", "konomura", "tukuru", "tukurura",
       "kiku", "kikura", "simesu", "simesura", "ugoku", "ugokura"},
      {"ga", "wo", "<", ">", "_"}};
  return words;
}

struct Sentence {
  std::vector<std::int64_t> words;   // of the source, with its end mark
  std::vector<std::int64_t> answer;  // with its end mark
  std::vector<std::int64_t> from;    // the place in the source of each, or unscored
};

class Composer {
 public:
  explicit Composer(Random& random) : random_(random) {}

  Sentence compose() {
    const bool has_time = random_.bernoulli(0.5), has_adverb = random_.bernoulli(0.5);
    if (has_time) say(time_word);
    const std::int64_t subject = say_noun_phrase();
    const std::int64_t subject_end = here();
    say(verb);
    const std::int64_t object = say_noun_phrase();
    const std::int64_t object_end = here();
    if (has_adverb) say(adverb);
    s_.words.push_back(source().first(mark) + source_end);

    answer_reversed(subject, subject_end);
    add(target().first(mark) + ga, unscored);
    if (has_adverb) add_word(object_end);
    answer_reversed(object, object_end);
    add(target().first(mark) + wo, unscored);
    if (has_time) add_word(0);
    const std::int64_t plural = s_.words[static_cast<std::size_t>(subject_end - 1)] % 2;
    const std::int64_t which = s_.words[static_cast<std::size_t>(subject_end)] - source().first(verb);
    add(target().first(verb) + 2 * which + plural, subject_end);
    add(target().first(mark) + target_end, unscored);
    return std::move(s_);
  }

 private:
  std::int64_t here() const { return std::ssize(s_.words); }
  void say(Kind kind) { s_.words.push_back(source().any(kind, random_)); }
  std::int64_t say_noun_phrase() {
    const std::int64_t begin = here();
    say(determiner);
    const double u = random_.uniform();
    if (u >= 0.4) say(adjective);
    if (u >= 0.75) say(adjective);
    say(noun);
    return begin;
  }
  void add(std::int64_t word, std::int64_t from) {
    s_.answer.push_back(word);
    s_.from.push_back(from);
  }
  /// Up to the verbs both languages have the same ids.
  void add_word(std::int64_t place) { add(s_.words[static_cast<std::size_t>(place)], place); }
  void answer_reversed(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = end - 1; i >= begin; --i) add_word(i);
  }

  Random& random_;
  Sentence s_;
};

void put(Batch& batch, std::int64_t row, const Sentence& s) {
  std::int64_t* from = example_of(batch.inputs[0], row);
  std::int64_t* decoder = example_of(batch.inputs[1], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::uint8_t* valid = batch.source_valid.data<std::uint8_t>() + row * TranslateTask::source_context;
  std::fill_n(from, TranslateTask::source_context, source().first(mark) + source_pad);
  std::copy(s.words.begin(), s.words.end(), from);
  std::fill_n(valid, TranslateTask::source_context, std::uint8_t{0});
  std::fill_n(valid, std::ssize(s.words), std::uint8_t{1});
  std::fill_n(decoder, TranslateTask::context, target().first(mark) + target_pad);
  decoder[0] = target().first(mark) + target_start;
  for (std::int64_t i = 0; i < std::ssize(s.answer); ++i) {
    const auto at = static_cast<std::size_t>(i);
    answers[i] = s.answer[at];
    if (i + 1 < std::ssize(s.answer)) decoder[i + 1] = s.answer[at];
    example_of(batch.head_targets[TranslateTask::words], row)[i] = s.from[at];
    const bool is_noun = s.from[at] != unscored && s.answer[at] < target().count(noun);
    if (is_noun) example_of(batch.head_targets[TranslateTask::nouns], row)[i] = s.from[at];
  }
}

Sentence drawn(Random& random, bool held_out) {
  return draw_sentence(random, held_out, [](Random& r) { return Composer(r).compose(); });
}

}  // namespace

Needs TranslateTask::needs() const {
  Needs needs = language_needs(1, true);
  needs.architecture = Architecture::encoder_decoder;
  needs.streams = {{"source", source().size(), language_embedding_std},
                   {"target", target().size(), language_embedding_std}};
  needs.readouts = {{"next", target().size()}};
  needs.context = context;
  needs.source_context = source_context;
  return needs;
}

Recipe TranslateTask::recipe() const { return language_recipe(600); }

std::optional<Greedy> TranslateTask::greedy() const {
  const std::int64_t first = target().first(mark);
  return Greedy{first + target_start, first + target_end};
}

std::vector<HeadTarget> TranslateTask::head_targets() const {
  return {{"words", AttentionSite::cross, 0, HeadTarget::Kind::key},
          {"nouns", AttentionSite::cross, 0, HeadTarget::Kind::key}};
}

std::vector<Rung> TranslateTask::ladder() const {
  return {{1, 0.660}, {2, 0.94}, {4, 0.984}, {8, 0.909}, {16, 0.941}};
}

std::vector<std::int64_t> TranslateTask::delimiters() const {
  const Greedy marks = *greedy();
  return {marks.start, marks.end};
}
std::optional<std::int64_t> TranslateTask::start_token() const { return greedy()->start; }

std::vector<Claim> TranslateTask::claims() const {
  return {{.says = "whole sentences", .heads = {1}, .lower = .40, .upper = .90},
          {.says = "whole sentences", .heads = {4}, .lower = .93},
          {.says = "whole sentences", .heads = {8, 16}, .lower = .80},
          {.says = "alignment above the best offset, best head",
           .measure = Measure::relation_above_offset,
           .heads = {1, 4, 8, 16},
           .lower = .25,
           .target = words},
          {.says = "alignment of nouns, best head",
           .measure = Measure::relation,
           .heads = {4, 8, 16},
           .lower = .70,
           .target = nouns}};
}

void TranslateTask::write(Batch& batch, std::int64_t row, Random& random) const {
  put(batch, row, drawn(random, false));
}

void TranslateTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed,
                                   std::int64_t index) const {
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  put(batch, row, drawn(random, true));
}

std::string TranslateTask::spell(std::size_t stream, std::int64_t id) const {
  return (stream == 0 ? source() : target()).word(id);
}

}  // namespace headlab
