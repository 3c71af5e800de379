// Sentences of the invented languages, read back word by word.
#include "framework/data/language.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

std::vector<std::string> words_of(const Task& task, const Batch& batch, std::int64_t b, bool source = false) {
  return task.labels(batch, b, source);
}
std::int64_t place_of(const std::vector<std::string>& words, const std::set<std::string>& any) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const auto& w) { return any.count(w) > 0; });
  return found == words.end() ? -1 : found - words.begin();
}

TEST(Language, HeldOutSentencesAreNeverTrained) {
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(std::make_unique<AgreementTask>());
  tasks.push_back(std::make_unique<CoreferenceTask>());
  tasks.push_back(std::make_unique<SensesTask>());
  tasks.push_back(std::make_unique<TranslateTask>());
  for (const auto& task : tasks) {
    std::set<std::vector<std::int64_t>> held_out;
    const auto rows = [&](const Batch& batch, const auto& f) {
      for (std::int64_t b = 0; b < batch.size(); ++b) {
        const std::int64_t* row = example_of(batch.inputs[0], b);
        f(std::vector<std::int64_t>(row, row + batch.inputs[0].dim(1)));
      }
    };
    rows(task->held_out(1, 0, 1024), [&](const auto& row) { held_out.insert(row); });
    rows(task->batch(1, 0, 3000),
         [&](const auto& row) { EXPECT_EQ(held_out.count(row), 0U) << task->name(); });
    EXPECT_GT(held_out.size(), 900U) << task->name();
  }
}

// Words by their spelling: the number of a noun is its last letter.
TEST(Agreement, TheVerbFollowsSubjectAndTime) {
  const AgreementTask task;
  const Batch batch = task.held_out(2, 0, 600);
  double hard = 0, first_noun_right = 0, last_noun_right = 0, words_in_all = 0;
  std::map<std::int64_t, int> subject_offsets;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    std::vector<std::string> words = words_of(task, batch, b);
    const std::int64_t verb = place_of(words, {"is", "are", "was", "were"});
    ASSERT_GT(verb, 3);
    const std::int64_t subject = at(batch.head_targets[0], b, verb - 1);
    const std::int64_t time = at(batch.head_targets[1], b, verb - 1);
    const auto word = [&](std::int64_t t) { return words[static_cast<std::size_t>(t)]; };
    const bool plural = word(subject).back() == 's';
    const bool past = std::set<std::string>{"yesterday", "then", "earlier"}.count(word(time)) > 0;
    EXPECT_EQ(word(verb), past ? (plural ? "were" : "was") : (plural ? "are" : "is"));
    EXPECT_EQ(at(batch.probes[1], b, verb - 1), past);
    std::vector<bool> nouns;  // plural?
    bool differ = false;
    for (std::int64_t t = 0; t < verb; ++t) {
      const std::int64_t id = at(batch.inputs[0], b, t);
      if (id >= 16) continue;
      nouns.push_back(word(t).back() == 's');
      if (t > subject) differ = differ || nouns.back() != plural;
    }
    EXPECT_EQ(at(batch.probes[0], b, verb - 1), differ ? plural : unscored);
    for (std::int64_t t = 0; t < 20; ++t) {
      const bool asked = t == verb - 1;
      EXPECT_EQ(at(batch.head_targets[0], b, t) != unscored, asked);
      const std::int64_t next = t + 1 < 20 ? at(batch.inputs[0], b, t + 1) : at(batch.targets, b, t);
      const bool last =
          at(batch.targets, b, t) != unscored && task.token_text(0, at(batch.targets, b, t)) == ".";
      if (at(batch.targets, b, t) != unscored && !last) {
        EXPECT_EQ(at(batch.targets, b, t), next);
      }
      words_in_all += at(batch.targets, b, t) != unscored;
    }
    ++subject_offsets[verb - 1 - subject];
    if (!differ) continue;
    hard += 1;
    first_noun_right += nouns.front() == plural;
    last_noun_right += nouns.back() == plural;
  }
  EXPECT_NEAR(words_in_all / 600 + 1, 13, 0.7);
  EXPECT_NEAR(first_noun_right / hard, 0.764, 0.06);
  EXPECT_NEAR(last_noun_right / hard, 0.146, 0.06);
  int most = 0;
  for (const auto& entry : subject_offsets) most = std::max(most, entry.second);
  EXPECT_NEAR(most / 600.0, 0.27, 0.06);
}

TEST(Coreference, ThePronounIsTheNumberOfTheNounThatThePropertyFits) {
  const CoreferenceTask task;
  const Batch batch = task.batch(4, 0, 400);
  double differ = 0;
  std::map<std::int64_t, int> property_offsets;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    const std::vector<std::string> words = words_of(task, batch, b);
    const std::int64_t mask = place_of(words, {"[mask]"});
    const auto target = [&](CoreferenceTask::Target t) { return at(batch.head_targets[t], b, mask); };
    const auto id = [&](std::int64_t t) { return at(batch.inputs[0], b, t); };
    const std::int64_t right = id(target(CoreferenceTask::antecedent));
    const std::int64_t wrong = id(target(CoreferenceTask::wrong_noun));
    const std::int64_t property = id(target(CoreferenceTask::property)) - CoreferenceTask::nouns;
    EXPECT_EQ(right / 4, property / 2);
    EXPECT_NE(wrong / 4, property / 2);
    EXPECT_EQ(at(batch.targets, b, mask), right % 2);
    EXPECT_EQ(at(batch.probes[0], b, mask), right % 2 != wrong % 2 ? right % 2 : unscored);
    differ += right % 2 != wrong % 2;
    ++property_offsets[target(CoreferenceTask::property) - mask];
  }
  EXPECT_NEAR(differ / 400, 0.5, 0.08);
  EXPECT_NEAR(property_offsets[3] / 400.0, 0.5, 0.08);  // the best fixed offset
}

TEST(Senses, TheCueTellsTheSense) {
  const SensesTask task;
  const Batch batch = task.batch(4, 0, 300);
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    std::int64_t scored = 0, cues = 0, length = 0;
    std::set<std::int64_t> words;
    for (std::int64_t t = 0; t < SensesTask::context; ++t) {
      const std::int64_t id = at(batch.inputs[0], b, t);
      const bool real = batch.valid.at(b * SensesTask::context + t) == 1;
      EXPECT_EQ(real, task.token_text(0, id) != "_");
      length += real;
      cues += id >= 4 && id < 28;
      const std::int64_t label = at(batch.targets, b, t);
      EXPECT_EQ(label != unscored, id < 4);
      if (label == unscored) continue;
      ++scored;
      words.insert(id);
      EXPECT_EQ(label / 2, id);
      EXPECT_EQ((at(batch.inputs[0], b, at(batch.head_targets[0], b, t)) - 4) / 3, label);
    }
    EXPECT_GE(length, 9);
    EXPECT_EQ(scored, 2);
    EXPECT_EQ(words.size(), 2U);
    EXPECT_EQ(cues, 2);
  }
}

TEST(Translate, EveryWordComesFromItsPlaceAndTheVerbKnowsTheSubject) {
  const TranslateTask task;
  const Batch batch = task.batch(4, 0, 300);
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    std::vector<std::string> answer;
    std::int64_t aligned = 0;
    bool subject_plural = false;
    for (std::int64_t t = 0; t < TranslateTask::context; ++t) {
      const std::int64_t id = at(batch.targets, b, t);
      if (id == unscored) break;
      const std::string word = task.token_text(1, id);
      answer.push_back(word);
      if (t + 1 < TranslateTask::context && word != ">") {
        EXPECT_EQ(at(batch.inputs[1], b, t + 1), id);
      }
      const std::int64_t from = at(batch.head_targets[TranslateTask::words], b, t);
      EXPECT_EQ(from == unscored, word == "ga" || word == "wo" || word == ">");
      if (t == 0) subject_plural = word.size() > 2 && word.substr(word.size() - 2) == "ra" && word != "ra";
      if (from == unscored) continue;
      ++aligned;
      const std::int64_t original = at(batch.inputs[0], b, from);
      EXPECT_EQ(at(batch.head_targets[TranslateTask::nouns], b, t) != unscored, id < 24);
      if (original < 38) {
        EXPECT_EQ(original, id);
      }
      if (id >= 38 && id < 54) {
        EXPECT_EQ(task.token_text(0, original), task.token_text(0, 38 + (id - 38) / 2));
        EXPECT_EQ((id - 38) % 2 == 1, subject_plural);
      }
    }
    EXPECT_EQ(answer.back(), ">");
    std::int64_t real = 0;
    for (std::int64_t s = 0; s < TranslateTask::source_context; ++s) {
      real += batch.source_valid.at(b * TranslateTask::source_context + s) == 1;
    }
    EXPECT_EQ(aligned, real - 1);  // all but the end mark
  }
}

TEST(Lexicon, CountsThroughAllKinds) {
  const Lexicon words{{"a", "b"}, {}, {"c"}};
  EXPECT_EQ(words.size(), 3);
  EXPECT_EQ(words.first(2), 2);
  EXPECT_EQ(words.count(1), 0);
  EXPECT_EQ(words.word(2), "c");
}

}  // namespace
}  // namespace headlab
