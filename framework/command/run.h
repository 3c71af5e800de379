// The headlab command: sub-commands over a catalogue. A program of one's own adds its tasks and models to a
// catalogue and gets them all.
#pragma once

#include "framework/train/catalogue.h"

namespace headlab {

/// Runs "headlab SUB-COMMAND …". Results go to standard output, warnings, progress and the one line of an
/// error to standard error. Returns the exit status: 0, 1 after a failure, 2 for a command line that cannot
/// be followed (nothing is written then), 130 when interrupted by SIGINT or SIGTERM with everything saved.
/// Once a process: it changes how signals are taken and how many threads there are. Does not throw.
int run_command(int argc, char** argv, const Catalogue& catalogue);

}  // namespace headlab
