#include "framework/heads/weight_figures.h"

#include <cmath>
#include <map>
#include <tuple>

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const Matrix>;

View view(const Array& a) { return {a.data<double>(), a.dim(0), a.dim(1)}; }

Matrix wide(const Array& a) {
  const Array copy = a.to(DType::f64);
  return view(copy);
}

struct Ranks {
  double stable = 0, effective = 0;
};

// Of A·B with A [m, n], B [n, p]: with A = Q R and Bᵀ = P S the singular values are those of R Sᵀ, at most
// n × n.
Ranks ranks_of(const Matrix& a, const Matrix& b_transposed) {
  const auto small = [](const Matrix& m) -> Eigen::MatrixXd {
    if (m.rows() <= m.cols()) return m;
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(m);
    return qr.matrixQR().topRows(m.cols()).triangularView<Eigen::Upper>();
  };
  const Eigen::MatrixXd core = small(a) * small(b_transposed).transpose();
  const Eigen::VectorXd sigma = Eigen::JacobiSVD<Eigen::MatrixXd>(core).singularValues();
  const double sum = sigma.sum();
  if (sum <= 0) return {};
  double entropy = 0;
  for (const double s : sigma) {
    if (s > 0) entropy -= s / sum * std::log(s / sum);
  }
  return {sigma.squaredNorm() / (sigma[0] * sigma[0]), std::exp(entropy)};
}

double copying_of(const HeadWeights& head, const Matrix& embedding, const Matrix& readout) {
  // (W_O W_Uᵀᵀ)(W_E W_V): [d_v, V] [V, d_v].
  const Eigen::MatrixXd writes = view(head.o) * readout.transpose();
  const Eigen::MatrixXd reads = embedding * view(head.v);
  const Eigen::VectorXcd lambda = (writes * reads).eigenvalues();
  const double size = lambda.cwiseAbs().sum();
  return size > 0 ? lambda.real().sum() / size : 0;
}

// ‖X Y Zᵀ‖_F² = tr(Yᵀ (XᵀX) Y (ZᵀZ)): nothing larger than the heads' own sizes is formed.
double norm_of(const Matrix& x_gram, const Matrix& y, const Matrix& z_gram) {
  const Matrix left = x_gram * y;
  const Matrix right = y * z_gram;
  return std::sqrt(std::max(left.cwiseProduct(right).sum(), 0.0));
}

struct Factors {
  Matrix q, k, v, ot;                      // ot = W_Oᵀ, so that all have one row per channel of the stream
  Matrix q_gram, k_gram, v_gram, ot_gram;  // XᵀX
  double qk = 0, ov = 0;                   // norms of W_QK and W_OV
};

Factors factors_of(Matrix q, Matrix k, Matrix v, Matrix ot) {
  Factors f{std::move(q), std::move(k), std::move(v), std::move(ot), {}, {}, {}, {}};
  f.q_gram = f.q.transpose() * f.q;
  f.k_gram = f.k.transpose() * f.k;
  f.v_gram = f.v.transpose() * f.v;
  f.ot_gram = f.ot.transpose() * f.ot;
  f.qk = norm_of(f.q_gram, Matrix::Identity(f.q.cols(), f.q.cols()), f.k_gram);
  f.ov = norm_of(f.v_gram, Matrix::Identity(f.v.cols(), f.v.cols()), f.ot_gram);
  return f;
}

struct Raw {
  double query = 0, key = 0, value = 0;
};

// W_OV¹ B = V₁ (O₁ X) Yᵀ with B = X Yᵀ: query X = Q₂, Y = K₂; key X = K₂, Y = Q₂; value X = V₂, Yᵀ = O₂.
Raw raw_composition(const Factors& from, const Factors& to, bool query, bool key_and_value) {
  const auto share = [&](const Matrix& x, const Matrix& y_gram, double norm) {
    const double all = from.ov * norm;
    return all > 0 ? norm_of(from.v_gram, from.ot.transpose() * x, y_gram) / all : 0;
  };
  Raw raw;
  if (query) raw.query = share(to.q, to.k_gram, to.qk);
  if (key_and_value) {
    raw.key = share(to.k, to.q_gram, to.qk);
    raw.value = share(to.v, to.ot_gram, to.ov);
  }
  return raw;
}

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(const Factors& from, const Factors& to) {
  return {from.v.rows(), from.v.cols(), from.ot.rows(), to.q.rows(), to.q.cols(),
          to.k.rows(),   to.v.rows(),   to.v.cols(),    to.ot.rows()};
}

struct Chance {
  Raw mean, squares;

  double width(double Raw::*part) const {
    return 4 * std::sqrt(std::max(squares.*part - mean.*part * (mean.*part), 0.0));
  }
};

Chance random_composition(const Factors& from, const Factors& to, bool query, bool key_and_value) {
  constexpr int draws = 32;
  Random random(0, Stream::statistics, hash("composition"));
  const auto like = [&](const Matrix& m) {
    return Matrix(Matrix::NullaryExpr(m.rows(), m.cols(), [&] { return random.normal(); }));
  };
  Chance chance;
  for (int i = 0; i < draws; ++i) {
    const auto drawn = [&](const Factors& f) {
      Matrix q = like(f.q), k = like(f.k), v = like(f.v), ot = like(f.ot);
      return factors_of(std::move(q), std::move(k), std::move(v), std::move(ot));
    };
    const Factors first = drawn(from);
    const Factors second = drawn(to);
    const Raw raw = raw_composition(first, second, query, key_and_value);
    for (double Raw::*part : {&Raw::query, &Raw::key, &Raw::value}) {
      chance.mean.*part += raw.*part / draws;
      chance.squares.*part += raw.*part * (raw.*part) / draws;
    }
  }
  return chance;
}

struct Feeds {
  bool query = false, key_and_value = false;
};

Feeds feeds(AttentionSite from, AttentionSite to) {
  const bool from_encoder = from == AttentionSite::encoder;
  if (to == AttentionSite::encoder) return {from_encoder, from_encoder};
  if (to == AttentionSite::cross) return {!from_encoder, from_encoder};
  return {!from_encoder, !from_encoder};
}

}  // namespace

double copying_score(const HeadWeights& head, const Model::TokenMaps& maps) {
  return copying_of(head, wide(maps.embedding), wide(maps.readout));
}

std::vector<std::optional<double>> copying_scores(Model& model) {
  const std::optional<Model::TokenMaps> maps = model.token_maps();
  if (!maps) return {};
  const Matrix embedding = wide(maps->embedding);
  const Matrix readout = wide(maps->readout);
  std::vector<std::optional<double>> scores;
  for (const HeadId id : all_heads(model)) {
    HeadLayer& layer = layer_of(model, id);
    scores.emplace_back();
    if (site_of(layer, model.needs()) != AttentionSite::self) continue;
    const std::optional<HeadWeights> weights = layer.head_weights(id.head);
    if (weights) scores.back() = copying_of(*weights, embedding, readout);
  }
  return scores;
}

std::optional<WeightFigures> weight_figures(Model& model, HeadId id) {
  const std::optional<HeadWeights> weights = layer_of(model, id).head_weights(id.head);
  if (!weights) return std::nullopt;
  const Ranks qk = ranks_of(view(weights->q), view(weights->k));
  const Ranks ov = ranks_of(view(weights->v), view(weights->o).transpose());
  WeightFigures figures;
  figures.qk_stable_rank = qk.stable;
  figures.qk_effective_rank = qk.effective;
  figures.ov_stable_rank = ov.stable;
  figures.ov_effective_rank = ov.effective;
  return figures;
}

std::vector<std::optional<WeightFigures>> all_weight_figures(Model& model) {
  const std::vector<std::optional<double>> copying = copying_scores(model);
  std::vector<std::optional<WeightFigures>> figures;
  for (const HeadId id : all_heads(model)) {
    figures.push_back(weight_figures(model, id));
    if (figures.back() && !copying.empty()) figures.back()->copying = copying[figures.size() - 1];
  }
  return figures;
}

std::vector<Composition> compositions(Model& model) {
  struct Part {
    HeadId id;
    AttentionSite site;
    Factors factors;
  };
  std::vector<Part> parts;
  for (const HeadId id : all_heads(model)) {
    HeadLayer& layer = layer_of(model, id);
    const std::optional<HeadWeights> w = layer.head_weights(id.head);
    if (!w) continue;
    parts.push_back({id, site_of(layer, model.needs()),
                     factors_of(view(w->q), view(w->k), view(w->v), view(w->o).transpose())});
  }
  std::map<std::pair<Sizes, int>, Chance> random;
  std::vector<Composition> result;
  for (const Part& from : parts) {
    for (const Part& to : parts) {
      const Feeds fed = feeds(from.site, to.site);
      if (from.id.layer >= to.id.layer || (!fed.query && !fed.key_and_value)) continue;
      const auto key =
          std::pair(sizes_of(from.factors, to.factors), (fed.query ? 1 : 0) + (fed.key_and_value ? 2 : 0));
      auto found = random.find(key);
      if (found == random.end()) {
        found =
            random.emplace(key, random_composition(from.factors, to.factors, fed.query, fed.key_and_value))
                .first;
      }
      const Raw raw = raw_composition(from.factors, to.factors, fed.query, fed.key_and_value);
      Composition c{from.id, to.id, {}, {}, {}};
      const auto share = [&](double Raw::*part) {
        const Chance& chance = found->second;
        return Composition::Share{raw.*part - chance.mean.*part, chance.width(part)};
      };
      if (fed.query) c.query = share(&Raw::query);
      if (fed.key_and_value) {
        c.key = share(&Raw::key);
        c.value = share(&Raw::value);
      }
      result.push_back(c);
    }
  }
  return result;
}

}  // namespace headlab
