// A whole training run beside PyTorch's: a 2-layer pre-norm decoder with a tied read-out, 12 AdamW steps.
#include "framework/autograd/backward.h"
#include "framework/ops/cross_entropy.h"
#include "framework/optim/adamw.h"
#include "framework/optim/clip.h"
#include "framework/optim/parameter_buffer.h"
#include "models/decoder.h"
#include "tests/support/goldens.h"

namespace headlab {
namespace {

std::string their_name(const std::string& ours) {
  if (ours == "embed.token.weight") return "tok";
  if (ours == "embed.position.weight") return "pos";
  if (ours.rfind("readout.norm.", 0) == 0) return ours.substr(8);
  std::string name = ours.substr(7);  // blocks.
  const std::vector<std::pair<std::string, std::string>> parts{
      {".norm_attn", ".ln1"}, {".norm_mlp", ".ln2"}, {".attn.", "."}, {".mlp.", "."}};
  for (const auto& part : parts) {
    const auto at = name.find(part.first);
    if (at != std::string::npos) name.replace(at, part.first.size(), part.second);
  }
  return name;
}

void run(const std::string& file, DType dtype, double tolerance, double curve_tolerance) {
  const Golden golden(file);
  const auto& c = golden.cases().at(0);
  const DefaultDType scope(dtype);
  Needs needs;
  needs.streams = {{"token", 11, 0.1}};
  needs.readouts = {{"next", 11}};
  needs.context = 8;
  needs.layers = 2;
  needs.d_model = 16;
  needs.heads = 4;
  needs.attention_bias = true;
  needs.mlp = 64;
  needs.positions = Needs::Positions::learned;
  needs.tied_readout = true;
  Decoder model(needs);
  std::map<std::string, Array> state;
  for (const NamedParameter& p : model.parameters()) state[p.path] = golden("init." + their_name(p.path));
  model.load_state(state);

  std::vector<OptimisedParameter> list;
  for (const NamedParameter& p : model.parameters()) {
    list.push_back({p.path, p.parameter->tensor(), p.parameter->tensor().rank() == 2});
  }
  ParameterBuffer buffer(list);
  AdamW adamw(buffer, {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1});
  const Array batches = golden("batches");
  const std::int64_t n = 8;
  for (std::int64_t s = 0; s < c.at("steps").get<std::int64_t>(); ++s) {
    Array x({4, n}, DType::i64);
    Array y({4, n}, DType::i64);
    for (std::int64_t b = 0; b < 4; ++b) {
      const std::int64_t* row = batches.data<std::int64_t>() + (s * 4 + b) * (n + 1);
      std::copy_n(row, n, x.data<std::int64_t>() + b * n);
      std::copy_n(row + 1, n, y.data<std::int64_t>() + b * n);
    }
    buffer.clear_gradients();
    const Tensor logits = model(std::span<const Array>(&x, 1));
    const Tensor loss = cross_entropy(logits, y).loss;
    backward(loss);
    if (s == 0) {
      expect_close(logits.value(), golden("logits0", dtype), tolerance, "logits");
      for (const NamedParameter& p : model.parameters()) {
        expect_close(p.parameter->tensor().grad(), golden("grad0." + their_name(p.path), dtype), tolerance,
                     p.path);
      }
    }
    const double norm = clip_gradients(buffer, 1.0).norm;
    EXPECT_NEAR(loss.item(), golden("losses").at(s), curve_tolerance) << "step " << s;
    EXPECT_NEAR(norm, golden("grad_norms").at(s), curve_tolerance * std::max(1.0, norm)) << "step " << s;
    adamw.step(1e-2);
  }
  for (const NamedParameter& p : model.parameters()) {
    Array got = p.parameter->tensor().value().copy();
    Array want = golden("final." + their_name(p.path), dtype);
    // The gradient of the keys' bias is 0 in theory, and Adam turns rounding noise into steps.
    if (dtype == DType::f32 && p.path.find("qkv.bias") != std::string::npos) {
      std::fill_n(got.data<float>() + 16, 16, 0.0F);
      std::fill_n(want.data<float>() + 16, 16, 0.0F);
    }
    expect_close(got, want, dtype == DType::f64 ? 1e-9 : 2e-4, p.path);
  }
}

TEST(Decoder, TrainsAsPyTorchDoesInF64) { run("gpt_training", DType::f64, 1e-10, 1e-9); }
TEST(Decoder, TrainsAsPyTorchDoesInF32) { run("gpt_training.f32", DType::f32, 1e-5, 5e-6); }

}  // namespace
}  // namespace headlab
