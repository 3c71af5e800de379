// Standard output and standard error, with every failure noticed. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace headlab {

/// Before anything is opened: a closed standard input or error becomes /dev/null, so that no file of ours
/// lands on its number; a reader that goes away is an error and no silent death. Error: standard output is
/// closed.
void prepare_console();

/// To standard output. Errors, here and below: "standard output: No space left on device".
void print(std::string_view text);
/// Makes everything printed so far visible.
void flush_output();

/// One line on standard error; lost where that cannot be written.
void complain(std::string_view line);

/// A path or argument as one would type it for a shell: in single quotes where that is needed.
std::string for_shell(const std::string& argument);

}  // namespace headlab
