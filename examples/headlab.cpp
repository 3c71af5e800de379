// The headlab command: fill the catalogue, run the command. A program of one's own does the same with its own
// tasks added.
#include "framework/command/run.h"
#include "framework/data/copy.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"
#include "models/build.h"

int main(int argc, char** argv) {
  headlab::Catalogue catalogue;
  catalogue.build_with(headlab::build_model)
      .add(std::make_shared<headlab::OffsetsTask>())
      .add(std::make_shared<headlab::RolesTask>())
      .add(std::make_shared<headlab::PrevTask>())
      .add(std::make_shared<headlab::CopyTask>())
      .add(std::make_shared<headlab::ReverseTask>())
      .add(std::make_shared<headlab::InductionTask>());
  return headlab::run_command(argc, argv, catalogue);
}
