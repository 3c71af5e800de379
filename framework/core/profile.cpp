#include "framework/core/profile.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "framework/core/check.h"

namespace headlab::profile {

namespace {

// Names for good: a node may outlive the recording in which it learned its layer.
struct Names {
  std::mutex mutex;
  std::unordered_map<std::string, std::int32_t> ids{{"", 0}};
  std::vector<std::string> texts{""};
};
Names& names() {
  static auto* all = new Names;
  return *all;
}

// Whole numbers: sums do not depend on who adds first.
std::atomic<std::int64_t> flops_done{0};
std::atomic<std::int64_t> bytes_done{0};

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Time and work up to some moment, or between two.
struct Reading {
  std::int64_t time = 0, flops = 0, bytes = 0;
  static Reading take() { return {now(), flops_done.load(), bytes_done.load()}; }
  Reading& operator+=(const Reading& o) {
    time += o.time, flops += o.flops, bytes += o.bytes;
    return *this;
  }
  friend Reading operator-(Reading a, const Reading& b) {
    return {a.time - b.time, a.flops - b.flops, a.bytes - b.bytes};
  }
};

using Key = std::tuple<std::int32_t, Pass, std::int32_t>;  // op, pass, layer

class Recorder {
 public:
  Recorder() : start_(Reading::take()), mark_(start_) {}

  void lap(std::int32_t op) {
    const Reading end = Reading::take();
    const Pass pass = !open_.empty() && open_.back().pass == Pass::backward ? Pass::backward : Pass::forward;
    const Key key{op, pass, layer()};
    const Reading spent = end - mark_;
    note(key, spent);
    event(key, mark_, end);
    mark_ = end;
    if (!open_.empty()) open_.back().inside += spent;
  }

  void open(std::int32_t op, Pass pass, std::int32_t layer) {
    mark_ = Reading::take();
    // What runs inside a layer's scope without one of its own is that layer's.
    open_.push_back({op, pass, layer, mark_, {}});
  }

  void close() {
    const Open last = open_.back();
    open_.pop_back();
    mark_ = Reading::take();
    const Key key{last.op, last.pass, last.layer};
    const Reading whole = mark_ - last.begin;
    note(key, whole - last.inside);
    event(key, last.begin, mark_);
    if (!open_.empty()) open_.back().inside += whole;
  }

  std::int32_t layer() const {
    for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
      if (scope->layer != 0) return scope->layer;
    }
    return 0;
  }

  Profile finish() {
    profile_.seconds = static_cast<double>((Reading::take() - start_).time) * 1e-9;
    return std::move(profile_);
  }

 private:
  struct Open {
    std::int32_t op;
    Pass pass;
    std::int32_t layer;
    Reading begin, inside;
  };

  void note(const Key& key, const Reading& own) {
    const auto found = line_of_.emplace(key, profile_.lines.size());
    if (found.second) {
      profile_.lines.push_back(
          {.op = name_of(std::get<0>(key)), .pass = std::get<1>(key), .layer = name_of(std::get<2>(key))});
    }
    Line& line = profile_.lines[found.first->second];
    ++line.calls;
    line.seconds += static_cast<double>(own.time) * 1e-9;
    line.flops += static_cast<double>(own.flops);
    line.bytes += static_cast<double>(own.bytes);
  }

  void event(const Key& key, const Reading& begin, const Reading& end) {
    if (profile_.events.size() >= most_events) {
      ++profile_.left_out;
      return;
    }
    const Reading spent = end - begin;
    profile_.events.push_back({std::get<0>(key), std::get<2>(key), std::get<1>(key), begin.time - start_.time,
                               end.time - start_.time, static_cast<double>(spent.flops),
                               static_cast<double>(spent.bytes)});
  }

  Reading start_, mark_;
  std::vector<Open> open_;
  std::map<Key, std::size_t> line_of_;
  Profile profile_;
};

// The recorder of this thread, if it is the one that is recorded, and which recording that is.
thread_local std::unique_ptr<Recorder> mine;
std::atomic<std::uint64_t> recordings{0};
thread_local std::uint64_t my_recording = 0;

}  // namespace

std::string name_of(std::int32_t id) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  return all.texts.at(static_cast<std::size_t>(id));
}

Recording::Recording() {
  bool expected = false;
  check(detail::recording.compare_exchange_strong(expected, true), "profile",
        "another recording is under way");
  my_recording = ++recordings;
  mine = std::make_unique<Recorder>();
}

Recording::~Recording() { stop(); }

Profile Recording::stop() {
  if (!mine) return {};
  Profile profile = mine->finish();
  mine.reset();
  detail::recording.store(false);
  return profile;
}

namespace detail {

std::atomic<bool> recording{false};

void count(double flops, double bytes) {
  flops_done.fetch_add(static_cast<std::int64_t>(flops), std::memory_order_relaxed);
  bytes_done.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

void lap(std::string_view op) {
  if (mine) mine->lap(id_of(op));
}

std::int32_t layer() { return mine ? mine->layer() : 0; }

std::int32_t id_of(std::string_view name) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ids.emplace(std::string(name), static_cast<std::int32_t>(all.texts.size()));
  if (found.second) all.texts.emplace_back(name);
  return found.first->second;
}

std::uint64_t open(std::int32_t op, Pass pass, std::int32_t layer) {
  if (!mine) return 0;
  mine->open(op, pass, layer);
  return my_recording;
}

void close(std::uint64_t opened) {
  if (mine && opened == my_recording) mine->close();
}

}  // namespace detail
}  // namespace headlab::profile
