// The headlab command: fill the catalogue, run the command. A program of one's own does the same with its own
// tasks added.
#include "framework/command/run.h"
#include "framework/data/addition.h"
#include "framework/data/agreement.h"
#include "framework/data/ask.h"
#include "framework/data/copy.h"
#include "framework/data/coreference.h"
#include "framework/data/glyphs.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/recall.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"
#include "framework/data/senses.h"
#include "framework/data/sort.h"
#include "framework/data/translate.h"
#include "models/build.h"

int main(int argc, char** argv) {
  headlab::Catalogue catalogue;
  catalogue.build_with(headlab::build_model)
      .add(std::make_shared<headlab::OffsetsTask>())
      .add(std::make_shared<headlab::RolesTask>())
      .add(std::make_shared<headlab::PrevTask>())
      .add(std::make_shared<headlab::CopyTask>())
      .add(std::make_shared<headlab::ReverseTask>())
      .add(std::make_shared<headlab::InductionTask>())
      .add(std::make_shared<headlab::RecallTask>())
      .add(std::make_shared<headlab::AgreementTask>())
      .add(std::make_shared<headlab::CoreferenceTask>())
      .add(std::make_shared<headlab::TranslateTask>())
      .add(std::make_shared<headlab::SensesTask>())
      .add(std::make_shared<headlab::AskTask>())
      .add(std::make_shared<headlab::SortTask>())
      .add(std::make_shared<headlab::AdditionTask>())
      .add(std::make_shared<headlab::GlyphsTask>());
  for (const headlab::KnownLayer& layer : headlab::built_in_layers()) catalogue.add(layer);
  return headlab::run_command(argc, argv, catalogue);
}
