// Progress for people: one line on a terminal, rewritten in place.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "framework/train/observer.h"

namespace headlab {

/// "step 120/600  loss 1.2345  12.3k tokens/s  0:42 left  validation 1.3012, accuracy 0.512". Silent where
/// the stream is no terminal; at most about ten times a second, and once at the end. A stream that cannot be
/// written is no reason to stop training.
class Progress : public Observer {
 public:
  struct Options {
    std::FILE* out = stderr;               ///< not owned
    bool always = false;                   ///< also where it is no terminal
    std::string label = {};                ///< put before the line
    std::function<double()> seconds = {};  ///< a clock; the steady one of the system unless given
  };
  Progress() : Progress(Options{}) {}
  explicit Progress(Options options);
  /// Ends the line that a training left open when it met an error.
  ~Progress() override { end_line(); }

  void on_start(Model& model, const Task& task, std::int64_t first_step, std::int64_t steps) override;
  void on_step(Model& model, const StepReport& report) override;
  void on_evaluation(Model& model, std::int64_t step, const Evaluation& evaluation) override;
  void on_end(Model& model) override;

 private:
  void print();
  void end_line();

  Options options_;
  bool on_;
  double started_ = 0;
  double printed_ = 0;
  bool unprinted_ = false;
  bool open_ = false;  // a line without its end is on the screen
  std::int64_t first_step_ = 0;
  std::int64_t tokens_ = 0;
  StepReport report_;
  std::string evaluation_;
};

}  // namespace headlab
