#include "framework/train/evaluation.h"

#include <algorithm>

#include "framework/autograd/backward.h"
#include "framework/data/copy.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"
#include "tests/support/ops.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

// Mean of -log softmax over all scored pairs, written out.
double loss_by_hand(const Array& logits, const Batch& batch, const Needs& needs) {
  double sum = 0;
  std::int64_t counted = 0;
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < batch.targets.dim(0) * batch.targets.dim(1); ++row) {
    for (std::size_t r = 0; r < needs.readouts.size(); ++r) {
      const std::int64_t classes = needs.readouts[r].classes;
      const auto target = static_cast<std::int64_t>(
          batch.targets.at(row * batch.targets.dim(2) + static_cast<std::int64_t>(r)));
      if (target != unscored) {
        double total = 0;
        for (std::int64_t c = 0; c < classes; ++c) total += std::exp(logits.at(at + c));
        sum += std::log(total) - logits.at(at + target);
        ++counted;
      }
      at += classes;
    }
  }
  return sum / static_cast<double>(counted);
}

TEST(TaskLoss, IsTheMeanOverAllPairsWhateverTheReadoutsSizes) {
  const TinyTask uneven;
  const RolesTask even;
  for (const Task* task : std::initializer_list<const Task*>{&uneven, &even}) {
    const Needs needs = task->needs();
    const Batch batch = task->batch(1, 0, 3);
    const Array x = random_array({3, needs.context, needs.logits()}, 5);
    const TaskLoss result = task_loss(Tensor(x), batch, needs);
    EXPECT_EQ(result.counted, count_scored(batch));
    EXPECT_NEAR(result.loss.item(), loss_by_hand(x, batch, needs), 1e-12) << task->name();
  }
}

TEST(TaskLoss, HasTheGradientOfThatMean) {
  const TinyTask task;
  const Needs needs = task.needs();
  const Batch batch = task.batch(1, 0, 2);
  Tensor logits(random_array({2, needs.context, needs.logits()}, 5), true);
  backward(task_loss(logits, batch, needs).loss);
  for (std::int64_t i = 0; i < logits.size(); i += 7) {
    Array moved = logits.value().copy();
    moved.data<double>()[i] += 1e-5;
    const double above = loss_by_hand(moved, batch, needs);
    moved.data<double>()[i] -= 2e-5;
    EXPECT_NEAR(logits.grad().at(i), (above - loss_by_hand(moved, batch, needs)) / 2e-5, 1e-8) << i;
  }
}

TEST(TaskLoss, OfNothingScoredIsZero) {
  const TinyTask task;
  Batch batch = task.batch(1, 0, 2);
  batch.targets.fill(static_cast<double>(unscored));
  Tensor logits(random_array({2, TinyTask::length, 13}, 5), true);
  const TaskLoss result = task_loss(logits, batch, task.needs());
  EXPECT_EQ(result.counted, 0);
  EXPECT_EQ(result.loss.item(), 0);
  backward(result.loss);
  for (const double g : logits.grad().values<double>()) EXPECT_EQ(g, 0);
}

TEST(TaskLoss, NamesShapesThatDoNotFit) {
  const TinyTask task;
  const Batch batch = task.batch(1, 0, 2);
  EXPECT_EQ(error_of([&] {
              task_loss(Tensor::zeros({2, 5, 12}), batch, task.needs());
            }),
            "task_loss: logits [2, 5, 12] and targets [2, 5, 2] for 2 read-outs of 13 classes in all");
}

/// Knows the answers of TinyTask, but for the first `wrong` positions of "before".
class Oracle : public Model {
 public:
  explicit Oracle(std::int64_t wrong) : Model(TinyTask().needs()), wrong_(wrong) {}
  Tensor logits(const Batch& batch) override {
    was_training = was_training || training();
    recorded = recorded || grad_enabled();
    Array out = Array::zeros({batch.size(), TinyTask::length, 13});
    for (std::int64_t row = 0; row < batch.size() * TinyTask::length; ++row) {
      const auto before = static_cast<std::int64_t>(batch.targets.at(2 * row));
      const bool right = row % TinyTask::length > wrong_;
      if (before != unscored) out.data<float>()[row * 13 + (right ? before : (before + 1) % 11)] = 1;
      out.data<float>()[row * 13 + 11 + static_cast<std::int64_t>(batch.targets.at(2 * row + 1))] = 1;
    }
    return Tensor(out);
  }
  bool was_training = false;
  bool recorded = false;

 private:
  std::int64_t wrong_;
};

TEST(Evaluate, PoolsAllScoredPairs) {
  const TinyTask task;
  Oracle oracle(1);  // 4 of "before" a sequence, one of them wrong, and 5 of "odd"
  for (const std::int64_t batch_size : {1, 5, 64}) {
    const Evaluation evaluation = evaluate(oracle, task, 1, HeldOut::all, batch_size);
    EXPECT_DOUBLE_EQ(evaluation.accuracy, 8.0 / 9);
    EXPECT_EQ(evaluation.scored, TinyTask::sequences * 9);
  }
  EXPECT_EQ(readout_accuracy(oracle, task, 1), (std::vector<double>{0.75, 1}));
  EXPECT_EQ(evaluate(oracle, task, 1, HeldOut::choose).scored, 18 * 9);
  EXPECT_EQ(evaluate(oracle, task, 1, HeldOut::score).scored, 19 * 9);
  EXPECT_FALSE(oracle.was_training);
  EXPECT_FALSE(oracle.recorded);
  EXPECT_TRUE(oracle.training());
  EXPECT_EQ(error_of([&] { evaluate(oracle, task, 1, HeldOut::all, 0); }),
            "evaluate: batch size 0 is below 1");
}

class WholeSequences : public TinyTask {
 public:
  Accuracy accuracy() const override { return Accuracy::whole_sequence; }
};

TEST(Evaluate, CountsWholeSequences) {
  Oracle perfect(0);
  const Evaluation all = evaluate(perfect, WholeSequences(), 1);
  EXPECT_EQ(all.accuracy, 1);
  EXPECT_EQ(all.scored, TinyTask::sequences);
  Oracle wrong(1);
  EXPECT_EQ(evaluate(wrong, WholeSequences(), 1).accuracy, 0);
}

TEST(Evaluate, PutsTheModeOfEveryPartBack) {
  const TinyTask task;
  const auto model = build_model(task.needs());
  std::vector<Module*> parts;
  model->visit([&](Module& m) { parts.push_back(&m); });
  parts[2]->eval();
  std::vector<bool> before;
  for (const Module* part : parts) before.push_back(part->training());
  evaluate(*model, task, 1);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i]->training(), before[i]) << i;
}

// A partly trained model answers some sequences right and some wrong.
TEST(Evaluate, TeacherForcedAndGreedyDecodedAnswersAgree) {
  const CopyTask copy;
  const ReverseTask reverse;
  for (const Task* task : std::initializer_list<const Task*>{&copy, &reverse}) {
    RunConfig config = config_of(*task, 80);
    config.recipe.batch = 24;
    const Trained trained = train_new(*task, config);
    const std::int64_t sequences = 96;
    const Batch batch = task->held_out(config.seed, 0, sequences);
    const Array answers = greedy_decode(*trained.model, batch, *task->greedy());
    trained.model->eval();
    const Array logits = trained.model->logits(batch).value();
    const std::int64_t classes = config.needs.logits();
    std::int64_t right = 0;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const std::int64_t* target = example_of(batch.targets, b);
      const std::int64_t* answer = example_of(answers, b);
      bool forced = true;
      for (std::int64_t t = 0; t < config.needs.context; ++t) {
        if (target[t] == unscored) continue;
        const float* row = logits.data<float>() + (b * config.needs.context + t) * classes;
        forced = forced && std::max_element(row, row + classes) - row == target[t];
      }
      const bool greedy = std::equal(answer, answer + config.needs.context, target);
      EXPECT_EQ(greedy, forced) << task->name() << " " << b;
      right += greedy ? 1 : 0;
    }
    RecordProperty(task->name(), static_cast<int>(right));
    EXPECT_GT(right, 0) << task->name();
    EXPECT_LT(right, sequences) << task->name();
  }
}

TEST(GreedyDecode, EndsEachAnswerByItself) {
  const CopyTask task;
  const auto model = build_model(task.needs());
  initialise(*model, 1);
  const Array answers = greedy_decode(*model, task.held_out(1, 0, 5), *task.greedy());
  for (std::int64_t b = 0; b < 5; ++b) {
    const std::int64_t* answer = example_of(answers, b);
    bool ended = false;
    for (std::int64_t t = 0; t < task.needs().context; ++t) {
      EXPECT_EQ(answer[t] == unscored, ended) << b << " " << t;
      ended = ended || answer[t] == CopyTask::end;
    }
  }
  const auto decoder = build_model(TinyTask().needs());
  EXPECT_EQ(error_of([&] { greedy_decode(*decoder, Batch(), {}); }),
            "greedy_decode: needs an encoder–decoder with one read-out");
}

}  // namespace
}  // namespace headlab
