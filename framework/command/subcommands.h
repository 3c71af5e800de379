// The sub-commands. Each declares its options, does its work and returns the exit status; errors are thrown:
// UsageError for a command line that cannot be followed, Error for a failure.
#pragma once

#include "framework/command/session.h"

namespace headlab {

int tasks_command(const Session& session);
int train_command(const Session& session);
int sample_command(const Session& session);
int ablate_command(const Session& session);
int inspect_command(const Session& session);
int knockout_command(const Session& session);
int lifeline_command(const Session& session);
int reproduce_command(const Session& session);
int prune_command(const Session& session);
int check_layer_command(const Session& session);
int verify_command(const Session& session);
int bench_command(const Session& session);

}  // namespace headlab
