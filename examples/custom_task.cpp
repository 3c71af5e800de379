// How to add a task: one subclass in the catalogue, and the whole command knows it.
//
//   custom_task train marked; custom_task inspect runs/marked; custom_task ablate marked
#include "framework/command/run.h"
#include "framework/data/one_layer.h"
#include "models/build.h"

using namespace headlab;

namespace {

// Sixteen letters, one of the first four carries a mark. From then on: which letter was it?
class MarkedTask final : public Task {
 public:
  static constexpr std::int64_t context = 16, letters = 20, first_scored = 4;

  std::string name() const override { return "marked"; }
  std::string shows() const override { return "content, not place: heads look for the marked letter"; }

  Needs needs() const override {
    Needs needs = one_layer_needs(context, 1);
    needs.streams = {{"letter", letters, one_layer_embedding_std()}, {"mark", 2, one_layer_embedding_std()}};
    needs.readouts = {{"marked", letters}};
    return needs;
  }
  Recipe recipe() const override { return one_layer_recipe(150); }
  std::vector<HeadTarget> head_targets() const override {
    return {{"marked", AttentionSite::self, 0, HeadTarget::Kind::key}};
  }
  double chance() const override { return 1.0 / letters; }

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override {
    std::int64_t* x = example_of(batch.inputs[0], row);
    for (std::int64_t t = 0; t < context; ++t) x[t] = random.below(letters);
    const std::int64_t marked = random.below(first_scored);
    example_of(batch.inputs[1], row)[marked] = 1;
    for (std::int64_t t = first_scored; t < context; ++t) {
      example_of(batch.targets, row)[t] = x[marked];
      example_of(batch.head_targets[0], row)[t] = marked;
    }
  }
  std::string spell(std::size_t stream, std::int64_t id) const override {
    if (stream == 0) return letter(id);
    return id == 1 ? "!" : "";
  }
};

}  // namespace

int main(int argc, char** argv) {
  Catalogue catalogue;
  catalogue.add(std::make_shared<MarkedTask>()).build_with(build_model);
  return run_command(argc, argv, catalogue);
}
