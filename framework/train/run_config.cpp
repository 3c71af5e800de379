#include "framework/train/run_config.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

template <class E>
struct Names;
template <>
struct Names<Architecture> {
  static constexpr std::array list{"decoder", "encoder_decoder"};
};
template <>
struct Names<Needs::Activation> {
  static constexpr std::array list{"gelu_exact", "gelu_tanh"};
};
template <>
struct Names<Needs::Positions> {
  static constexpr std::array list{"none", "learned", "rotary", "relative"};
};
template <>
struct Names<Needs::Weights> {
  static constexpr std::array list{"xavier_normal", "xavier_uniform", "fan_in", "fixed"};
};
template <>
struct Names<Recipe::Schedule> {
  static constexpr std::array list{"cosine", "linear", "constant"};
};

// One list of fields a struct serves writing and reading. `unless`: a field that is written only where it is
// not the default, so that runs from before it was there can still be read and keep their names in sweeps.
template <class V>
void fields(V& v, auto& x, const Needs::Tokens*) {
  v("name", x.name);
  v("vocabulary", x.vocabulary);
  v("embedding_std", x.embedding_std);
}
template <class V>
void fields(V& v, auto& x, const Needs::Readout*) {
  v("name", x.name);
  v("classes", x.classes);
}
template <class V>
void fields(V& v, auto& x, const Needs*) {
  v("architecture", x.architecture);
  v("streams", x.streams);
  v("readouts", x.readouts);
  v("context", x.context);
  v("source_context", x.source_context);
  v("causal", x.causal);
  v("layers", x.layers);
  v("d_model", x.d_model);
  v("heads", x.heads);
  v("head_size", x.head_size);
  v.unless("layer_heads", x.layer_heads, std::vector<std::int64_t>{});
  v("attention_bias", x.attention_bias);
  v("mlp", x.mlp);
  v("activation", x.activation);
  v("mlp_bias", x.mlp_bias);
  v("norm_bias", x.norm_bias);
  v("norm_epsilon", x.norm_epsilon);
  v("dropout", x.dropout);
  v("positions", x.positions);
  v("position_std", x.position_std);
  v("rotary_base", x.rotary_base);
  v("weights", x.weights);
  v("weight_std", x.weight_std);
  v("smaller_residual_weights", x.smaller_residual_weights);
  v("tied_readout", x.tied_readout);
  v("readout_bias", x.readout_bias);
  v.unless("patch_width", x.patch_width, std::int64_t{0});
  v.unless("class_token", x.class_token, false);
  v.unless("class_std", x.class_std, 0.0);
  v.unless("pooled", x.pooled, false);
  v.unless("smeared_keys", x.smeared_keys, false);
}
template <class V>
void fields(V& v, auto& x, const Recipe*) {
  v("batch", x.batch);
  v("steps", x.steps);
  v("learning_rate", x.learning_rate);
  v("schedule", x.schedule);
  v("warmup_steps", x.warmup_steps);
  v("warmup_share", x.warmup_share);
  v("floor_share", x.floor_share);
  v("beta1", x.beta1);
  v("beta2", x.beta2);
  v("epsilon", x.epsilon);
  v("clip", x.clip);
  v("weight_decay", x.weight_decay);
  v("decay_matrices", x.decay_matrices);
  v("decay_embeddings", x.decay_embeddings);
  v("decay_positions", x.decay_positions);
}
template <class V>
void fields(V& v, auto& x, const HeadOff*) {
  v("layer", x.layer);
  v("head", x.head);
  v("step", x.step);
}
template <class V>
void fields(V& v, auto& x, const RunConfig*) {
  v("task", x.task);
  v("needs", x.needs);
  v("recipe", x.recipe);
  v("seed", x.seed);
  v("accumulation", x.accumulation);
  v.unless("heads_off", x.heads_off, std::vector<HeadOff>{});
}

struct Writer {
  Json out = Json::object();
  template <class T>
  void operator()(const char* name, const T& value) {
    out[name] = write(value);
  }
  template <class T>
  void unless(const char* name, const T& value, const T& otherwise) {
    if (value != otherwise) out[name] = write(value);
  }
  template <class T>
  static Json write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return Names<T>::list.at(static_cast<std::size_t>(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Writer inner;
      fields(inner, value, static_cast<const T*>(nullptr));
      return std::move(inner.out);
    }
  }
  template <class T>
  static Json write(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write(value));
    return list;
  }
};

struct Reader {
  const Json& in;
  std::string_view where;
  std::string path;  // of this object, with a dot behind it
  std::set<std::string> known = {};

  template <class T>
  void operator()(const char* name, T& value) {
    known.insert(name);
    check(in.contains(name), where, "{}{} is missing", path, name);
    read(in[name], path + name, value);
  }
  template <class T>
  void unless(const char* name, T& value, const T& otherwise) {
    known.insert(name);
    value = otherwise;
    if (in.contains(name)) read(in[name], path + name, value);
  }

  template <class T>
  void read(const Json& json, const std::string& field, T& value) const {
    const auto require = [&](bool ok, std::string_view what) {
      check(ok, where, "{}: {} is not {}", field, json.dump(), what);
    };
    if constexpr (std::is_enum_v<T>) {
      const auto& list = Names<T>::list;
      std::size_t i = 0;
      while (i < list.size() && json != list[i]) ++i;
      require(i < list.size(), fmt::format("one of {}", fmt::join(list.begin(), list.end(), ", ")));
      value = static_cast<T>(i);
    } else if constexpr (std::is_same_v<T, bool>) {
      require(json.is_boolean(), "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      require(json.is_string(), "a text");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, double>) {
      require(json.is_number(), "a number");
      value = json.get<double>();
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      require(json.is_number_integer() && (json.is_number_unsigned() || json.get<std::int64_t>() >= 0),
              "an integer from 0 to 2^64 - 1");
      value = json.get<std::uint64_t>();
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
      require(json.is_number_integer() && (!json.is_number_unsigned() || json.get<std::uint64_t>() <= most),
              "an integer of 64 bits");
      value = json.get<std::int64_t>();
    } else {
      require(json.is_object(), "an object");
      Reader inner{json, where, field + "."};
      fields(inner, value, static_cast<const T*>(nullptr));
      inner.refuse_unknown();
    }
  }
  template <class T>
  void read(const Json& json, const std::string& field, std::vector<T>& values) const {
    check(json.is_array(), where, "{}: {} is not a list", field, json.dump());
    values.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) read(json[i], fmt::format("{}[{}]", field, i), values[i]);
  }
  void refuse_unknown() const {
    for (const auto& entry : in.items()) {
      check(known.count(entry.key()) != 0, where, "{}{} is unknown", path, entry.key());
    }
  }
};

}  // namespace

Json to_json(const RunConfig& config) { return Writer::write(config); }
Json to_json(const Needs& needs) { return Writer::write(needs); }

RunConfig run_config_from_json(const Json& json, std::string_view where) {
  check(json.is_object(), where, "is not a JSON object");
  RunConfig config;
  Reader reader{json, where, ""};
  fields(reader, config, static_cast<const RunConfig*>(nullptr));
  reader.refuse_unknown();
  return config;
}

void check_same(const Json& a, const Json& b, std::string_view where, std::string_view a_name,
                std::string_view b_name) {
  if (a == b) return;
  const Json flat_a = a.flatten();
  const Json flat_b = b.flatten();
  const auto text = [](const Json& flat, const std::string& key) {
    return flat.contains(key) ? flat[key].dump() : std::string("absent");
  };
  std::set<std::string> keys;
  for (const Json* flat : {&flat_a, &flat_b}) {
    for (const auto& entry : flat->items()) keys.insert(entry.key());
  }
  for (const std::string& key : keys) {
    const std::string in_a = text(flat_a, key);
    const std::string in_b = text(flat_b, key);
    if (in_a == in_b) continue;
    std::string field = key.substr(1);  // "/needs/heads"
    for (char& c : field) c = c == '/' ? '.' : c;
    fail(where, "{} is {} in {} and {} in {}", field, in_a, a_name, in_b, b_name);
  }
}

void validate(const RunConfig& config) {
  const Recipe& r = config.recipe;
  const auto require = [](bool ok, std::string_view field, auto value, std::string_view allowed) {
    check(ok, "train", "{} {} must be {}", field, value, allowed);
  };
  require(r.batch >= 1, "batch", r.batch, "at least 1");
  require(r.steps >= 1, "steps", r.steps, "at least 1");
  require(config.accumulation >= 1, "accumulation", config.accumulation, "at least 1");
  for (const HeadOff& off : config.heads_off) {
    check(off.step >= 0 && off.step < r.steps, "train", "head {}.{} goes off at step {}, allowed: 0 to {}",
          off.layer, off.head, off.step, r.steps - 1);
  }
  check(r.batch % config.accumulation == 0, "train",
        "accumulation {} does not divide the batch of {} examples", config.accumulation, r.batch);
  require(r.warmup_steps >= 0 && r.warmup_steps <= r.steps, "warmup_steps", r.warmup_steps,
          fmt::format("in 0 to {}, the steps", r.steps));
  require(r.warmup_share >= 0 && r.warmup_share <= 1, "warmup_share", r.warmup_share, "in [0, 1]");
  require(r.floor_share >= 0 && r.floor_share <= 1, "floor_share", r.floor_share, "in [0, 1]");
  require(std::isfinite(r.clip) && r.clip > 0, "clip", r.clip, "a finite number above 0");
  require(std::isfinite(r.weight_decay) && r.weight_decay >= 0, "weight_decay", r.weight_decay,
          "a finite number from 0 on");
}

}  // namespace headlab
