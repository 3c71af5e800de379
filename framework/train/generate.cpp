#include "framework/train/generate.h"

#include <algorithm>

#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/train/evaluation.h"

namespace headlab {

namespace {
Batch last_tokens(std::span<const std::int64_t> text, std::int64_t count) {
  Batch batch;
  batch.inputs.push_back(Array::of<std::int64_t>({1, count}, text.last(static_cast<std::size_t>(count))));
  return batch;
}
}  // namespace

std::vector<std::int64_t> generate(Model& model, std::span<const std::int64_t> prompt,
                                   const GenerateOptions& options,
                                   const std::function<bool(std::int64_t)>& on_token) {
  const Needs& needs = model.needs();
  check(needs.architecture == Architecture::decoder && needs.streams.size() == 1 &&
            needs.readouts.size() == 1 && needs.logits() == needs.streams[0].vocabulary && needs.causal,
        "generate", "needs a causal decoder that predicts the tokens it reads");
  check(!prompt.empty(), "generate", "the prompt is empty");
  check(options.tokens >= 0, "generate", "{} tokens were asked for", options.tokens);
  const NoGrad no_grad;
  const ModeScope mode(model, false);
  std::vector<std::int64_t> text(prompt.begin(), prompt.end());
  TextCache cache;
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    // Once the window slides, every token's position changes, and with it all that was kept.
    const bool fits = std::ssize(text) <= needs.context;
    const bool goes_on = options.cache && fits && model.continues();
    const std::int64_t seen = fits ? std::ssize(text) : needs.context;
    const Batch batch = last_tokens(text, goes_on ? seen - cache.length() : seen);
    const Tensor all = goes_on ? model.next_logits(batch, cache) : model.logits(batch);
    const Array logits = all.value().to(DType::f32);
    const auto last = logits.values<float>().last(static_cast<std::size_t>(needs.logits()));
    Random random(options.seed, Stream::sampling, static_cast<std::uint64_t>(i));
    text.push_back(sample(last, options.sampling, random.uniform()));
    if (on_token && !on_token(text.back())) break;
  }
  text.erase(text.begin(), text.begin() + std::ssize(prompt));
  return text;
}

}  // namespace headlab
