#include "models/encoder_decoder.h"

#include <cstring>

#include "framework/autograd/backward.h"
#include "framework/data/reverse.h"
#include "framework/train/evaluation.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

struct Result {
  double loss;
  std::vector<Array> gradients;
};

Result run(const Batch& batch, const ReverseTask& task) {
  EncoderDecoder model(task.needs());
  initialise(model, 3);
  const Tensor logits = model.logits(batch);
  const Tensor loss = task_loss(logits, batch, model.needs()).loss;
  backward(loss);
  Result result{loss.item(), {}};
  for (const NamedParameter& p : model.parameters())
    result.gradients.push_back(p.parameter->tensor().grad().copy());
  return result;
}

TEST(EncoderDecoder, PaddingIdsChangeNeitherLossNorGradients) {
  const ReverseTask task;
  Batch batch = task.batch(1, 0, 5);
  const Result want = run(batch, task);
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < batch.source_valid.size(); ++i) {
    if (batch.source_valid.data<std::uint8_t>()[i] != 0) continue;
    batch.inputs[0].data<std::int64_t>()[i] = 3 + i % 7;
    ++changed;
  }
  ASSERT_GT(changed, 0);
  const Result got = run(batch, task);
  EXPECT_EQ(got.loss, want.loss);
  for (std::size_t i = 0; i < want.gradients.size(); ++i)
    EXPECT_TRUE(same_bits(got.gradients[i], want.gradients[i]));
}

TEST(EncoderDecoder, RefusesWhatItCannotBe) {
  Needs needs = ReverseTask().needs();
  needs.streams.pop_back();
  EXPECT_THROW(EncoderDecoder{needs}, Error);
  needs.architecture = Architecture::decoder;
  EXPECT_THROW(EncoderDecoder{needs}, Error);
}

}  // namespace
}  // namespace headlab
