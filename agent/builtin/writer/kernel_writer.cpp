#include "agent/builtin/writer/kernel_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "agent/builtin/writer/expression_writer.h"
#include "agent/builtin/writer/step_counts.h"

namespace tilepilot::agent::builtin {

namespace {

constexpr size_t kLongExpression = 84;

struct TileBuffer {
  std::string name;
  int value;  // what it holds
};

class KernelWriter {
 public:
  explicit KernelWriter(const KernelRequest& request)
      : request_(request),
        graph_(request.graph),
        group_(request.group),
        tiles_(request.tiles),
        phases_(plan_phases(request.graph, request.group, request.tiles)),
        indices_(request.tiles),
        expressions_(request.graph, [this](int leaf, const std::string& index) { return load(leaf, index); }) {
    for (const char* name : {"i", "j", "k", "l", "p", "q", "bx", "by", "bz", "dtype", "T", "main"}) pool_.take(name);
    for (auto& loop : tiles_.loops) pool_.take(loop.size);
    expressions_.set_leaf_test([this](int id) { return group_.axes.leaves.count(id) > 0; });
  }

  std::optional<KernelText> run() {
    SignatureRequest wanted{graph_, group_, tiles_, request_.facts, {}, request_.product};
    const Phase& last = phases_.phases.back();
    wanted.overwriting.insert(last.outputs.begin(), last.outputs.end());
    auto signature = make_signature(wanted, pool_);
    if (!signature) return std::nullopt;
    signature_ = std::move(*signature);
    if (request_.product >= 0 && !write_product()) return std::nullopt;
    name_row_length();
    for (size_t i = 0; i < phases_.phases.size(); ++i) write_phase(static_cast<int>(i));
    KernelText text;
    text.parameters = factory_parameters(text.sizes);
    allocations_.insert(allocations_.end(), lines_.begin(), lines_.end());
    text.body = frame_program(signature_, indices_.launch(), allocations_);
    text.arguments = signature_.arguments;
    text.results = signature_.results;
    return text;
  }

 private:
  const KernelRequest& request_;
  const PrimitiveGraph& graph_;
  const Group& group_;
  const TilePlan& tiles_;
  PhasePlan phases_;
  std::optional<ProductPrologue> prologue_;
  LoopIndices indices_;
  ExpressionWriter expressions_;
  NamePool pool_;
  KernelSignature signature_;
  std::vector<std::string> allocations_, lines_;
  int depth_ = 0;
  std::vector<TileBuffer> buffers_;
  std::map<int, std::string> statistics_;  // value -> fragment
  std::map<int, std::string> partials_;    // reduction in two steps -> fragment of the first
  std::map<int, std::string> let_names_;

  void line(const std::string& text) { lines_.push_back(std::string(static_cast<size_t>(depth_) * 4, ' ') + text); }

  std::string dtype_text(const std::string& dtype) const {
    return dtype == signature_.dtype ? "dtype" : "\"" + dtype + "\"";
  }

  std::string load(int leaf, const std::string& index) const {
    std::string text = indices_.element(signature_.name_of.at(leaf), signature_.access_of.at(leaf), index);
    const std::string& dtype = graph_.at(leaf).dtype;
    return compute_dtype(dtype) == dtype ? text : fmt::format("T.cast({}, \"{}\")", text, compute_dtype(dtype));
  }

  bool write_product() {
    prologue_ = ProductPrologue::make(graph_, tiles_, request_.product, request_.product_tiles, request_.facts,
                                      signature_, pool_);
    if (!prologue_) return false;
    allocations_ = prologue_->allocations(tiles_, indices_);
    lines_ = prologue_->lines(indices_);
    for (auto& [id, leaf] : group_.axes.leaves) {
      if (leaf.base != request_.product) continue;
      expressions_.name(id, tile_element(prologue_->tile()));
      buffers_.push_back({prologue_->tile(), id});
      phases_.kept.erase(id);
    }
    return true;
  }

  // Means divide by the length of a row: it has a name.
  void name_row_length() {
    std::vector<std::string> sizes;
    int64_t length = 1;
    for (auto& loop : tiles_.loops)
      if (loop.reduced) {
        sizes.push_back(loop.size);
        length *= loop.extent;
      }
    std::string product = fmt::format("{}", fmt::join(sizes, " * "));
    if (length > 8)
      expressions_.name_number(static_cast<double>(length), sizes.size() == 1 ? product : "(" + product + ")");
  }

  std::string factory_parameters(std::vector<int64_t>& sizes) const {
    std::vector<std::string> parameters;
    for (auto& loop : tiles_.loops) {
      if (loop.atoms.empty()) continue;
      parameters.push_back(loop.size);
      sizes.push_back(loop.extent);
    }
    if (prologue_) {
      parameters.push_back("K");
      sizes.push_back(prologue_->depth());
    }
    for (int loop : {tiles_.row, tiles_.column})
      if (loop >= 0 && !tiles_.whole(loop))
        parameters.push_back(fmt::format("{}={}", indices_.block_size(loop), tiles_.block(loop)));
    if (tiles_.split > 1) parameters.push_back(fmt::format("split={}", tiles_.split));
    if (prologue_ && !prologue_->block_parameter().empty()) parameters.push_back(prologue_->block_parameter());
    if (!signature_.dtype.empty()) parameters.push_back(fmt::format("dtype=\"{}\"", signature_.dtype));
    return fmt::format("{}", fmt::join(parameters, ", "));
  }

  std::string allocate(const std::string& wanted, const std::string& shape, int value) {
    std::string name = pool_.take(wanted);
    std::string dtype = compute_dtype(graph_.at(value).dtype);
    allocations_.push_back(fmt::format("{} = T.alloc_fragment(({}{}), {})", name, shape,
                                       shape.find(',') == std::string::npos ? "," : "", dtype_text(dtype)));
    return name;
  }

  static std::string hint_or(const Primitive& p, const char* otherwise) {
    return p.hint.empty() || p.kind == Primitive::Kind::source ? otherwise : p.hint;
  }

  // Phases

  void write_phase(int index) {
    const Phase& phase = phases_.phases[static_cast<size_t>(index)];
    if (index == 0) copy_kept_leaves();
    write_statistics(phase);
    bool steps = !tiles_.resident() && (!phase.stored.empty() || !phase.outputs.empty() || !phase.reductions.empty() ||
                                        phase.one_pass.has_value());
    for (int id : phase.reductions) start_reduction(id);
    if (phase.one_pass) start_pair(*phase.one_pass);
    if (steps)
      for (auto& loop : indices_.serial()) {
        line(fmt::format("for {} in T.serial({}):", loop.variable, loop.count));
        ++depth_;
      }
    write_tile_loop(phase, index);
    if (phase.one_pass) write_pair_step(*phase.one_pass);
    for (int id : phase.reductions) write_reduction(id);
    if (steps) depth_ -= static_cast<int>(indices_.serial().size());
    for (int id : phase.reductions) finish_reduction(id);
    if (phase.one_pass) finish_pair(*phase.one_pass);
    if (tiles_.split > 1 && !phase.reductions.empty()) share_reductions(phase.reductions);
  }

  void copy_kept_leaves() {
    for (int id : phases_.kept) {
      if (!group_.axes.leaves.count(id)) continue;
      const std::string& parameter = signature_.name_of.at(id);
      std::string tile = allocate(parameter + "_tile", indices_.tile_shape(), id);
      auto& access = signature_.access_of.at(id);
      if (indices_.is_box(access)) {
        line(fmt::format("T.copy({}, {})", indices_.tile_start(parameter, access), tile));
      } else {
        open_tile_loop();
        line(fmt::format("{} = {}", tile_element(tile), load(id, "")));
        --depth_;
      }
      buffers_.push_back({tile, id});
      expressions_.name(id, tile_element(tile));
    }
  }

  std::string tile_element(const std::string& tile) const {
    return fmt::format("{}[{}]", tile, indices_.tile_variables());
  }

  void open_tile_loop() {
    line(fmt::format("for {} in T.Parallel({}):", indices_.tile_variables(), indices_.tile_shape()));
    ++depth_;
  }

  // The loop over the tile

  void write_tile_loop(const Phase& phase, int index) {
    std::vector<int> roots = phase.stored;
    roots.insert(roots.end(), phase.outputs.begin(), phase.outputs.end());
    if (roots.empty()) return;
    std::vector<std::string> targets;
    std::vector<int> displaced;
    for (int id : phase.stored) targets.push_back(tile_element(tile_for(id, index, phase, displaced)));
    for (int id : phase.outputs)
      targets.push_back(indices_.element(signature_.name_of.at(id), signature_.access_of.at(id)));
    open_tile_loop();
    std::vector<int> lets = write_lets(roots);
    if (roots.size() > 1) read_displaced(displaced);
    for (size_t i = 0; i < roots.size(); ++i) {
      std::string value = expressions_.write(roots[i]);
      bool stored = i < phase.stored.size(), masked = stored && !tiles_.ragged().empty();
      line(fmt::format("{} = {}", targets[i], masked ? mask(value, roots[i], phase) : value));
      if (stored && !masked) expressions_.name(roots[i], targets[i]);
    }
    --depth_;
    for (int id : lets) expressions_.forget(id);
    for (int id : phase.stored) expressions_.forget(id);
    for (int id : displaced) expressions_.forget(id);
    for (size_t i = 0; i < phase.stored.size(); ++i)
      if (phases_.kept.count(phase.stored[i])) expressions_.name(phase.stored[i], targets[i]);
  }

  // Names values that several places read and the parts of expressions too long for a line.
  std::vector<int> write_lets(const std::vector<int>& roots) {
    std::set<int> distinct(roots.begin(), roots.end());
    std::vector<int> repeated = expressions_.repeated({distinct.begin(), distinct.end()}), named;
    for (int id : repeated) {
      shorten(id, named);
      write_let(id, named);
    }
    for (int root : roots) shorten(root, named);
    return named;
  }

  void write_let(int id, std::vector<int>& named) {
    auto [known, fresh] = let_names_.try_emplace(id);
    if (fresh) {
      bool leaf = group_.axes.leaves.count(id) > 0;
      known->second = pool_.take(leaf ? signature_.name_of.at(id) + "_value" : hint_or(graph_.at(id), info_name(id)));
    }
    line(fmt::format("{} = {}", known->second, expressions_.write(id)));
    expressions_.name(id, known->second);
    named.push_back(id);
  }

  void shorten(int id, std::vector<int>& named) {
    if (expressions_.has_name(id) || expressions_.write(id).size() <= kLongExpression) return;
    for (int arg : graph_.at(id).args) {
      if (group_.axes.leaves.count(arg) || graph_.at(arg).kind != Primitive::Kind::map || expressions_.has_name(arg))
        continue;
      shorten(arg, named);
      if (expressions_.write(arg).size() > kLongExpression / 3) write_let(arg, named);
    }
  }

  const char* info_name(int id) const {
    const Primitive& p = graph_.at(id);
    return p.kind == Primitive::Kind::map ? info(p.op).name.data() : "value";
  }

  // A tile about to be overwritten in a loop with several stores is read first.
  void read_displaced(const std::vector<int>& displaced) {
    for (int id : displaced) {
      if (!expressions_.has_name(id)) continue;
      std::string name = pool_.take("before");
      line(fmt::format("{} = {}", name, expressions_.write(id)));
      expressions_.name(id, name);
    }
  }

  // A tile for a value: one whose content nobody reads after this loop, else a new one.
  std::string tile_for(int id, int phase_index, const Phase& phase, std::vector<int>& displaced) {
    for (auto& buffer : buffers_) {
      bool reduced_now = std::any_of(phase.reductions.begin(), phase.reductions.end(),
                                     [&](int reduction) { return graph_.at(reduction).args[0] == buffer.value; });
      auto last = phases_.last_phase.find(buffer.value);
      bool needed = last != phases_.last_phase.end() && last->second > phase_index;
      bool same_type = compute_dtype(graph_.at(buffer.value).dtype) == compute_dtype(graph_.at(id).dtype);
      if (needed || reduced_now || !same_type || buffer.value == id) continue;
      displaced.push_back(buffer.value);
      buffer.value = id;
      return buffer.name;
    }
    bool leaf = group_.axes.leaves.count(id) > 0;
    std::string wanted = leaf ? signature_.name_of.at(id) + "_tile" : hint_or(graph_.at(id), "tile");
    std::string name = allocate(wanted, indices_.tile_shape(), id);
    buffers_.push_back({name, id});
    return name;
  }

  std::string mask(const std::string& value, int id, const Phase& phase) const {
    ReduceOp op = ReduceOp::sum;
    for (int reduction : phase.reductions)
      if (graph_.at(reduction).args[0] == id) op = graph_.at(reduction).reduction;
    return where_in_range(value, identity(op));
  }

  // Reductions

  static std::string identity(ReduceOp op) {
    if (op == ReduceOp::sum) return "0.0";
    return op == ReduceOp::max ? "-T.infinity(\"float32\")" : "T.infinity(\"float32\")";
  }

  bool in_two_steps() const {
    return tiles_.row >= 0 && tiles_.loop(tiles_.row).reduced && tiles_.loop(tiles_.column).reduced;
  }

  void start_reduction(int id) {
    const Primitive& p = graph_.at(id);
    static const char* const kNames[] = {"total", "highest", "lowest"};
    std::string wanted = hint_or(p, kNames[static_cast<int>(p.reduction)]);
    statistics_[id] = allocate(wanted, indices_.statistic_size(), id);
    expressions_.name(id, fmt::format("{}[{}]", statistics_[id], indices_.statistic_index()));
    if (in_two_steps()) {
      const bool columns_left = tiles_.rows_first;
      partials_[id] = allocate(wanted + (columns_left ? "_columns" : "_rows"),
                               indices_.block_size(columns_left ? tiles_.column : tiles_.row), id);
    }
    if (tiles_.resident()) return;
    const std::string& target = in_two_steps() ? partials_[id] : statistics_[id];
    line(p.reduction == ReduceOp::sum ? fmt::format("T.clear({})", target)
                                      : fmt::format("T.fill({}, {})", target, identity(p.reduction)));
  }

  static const char* function_of(ReduceOp op) {
    return op == ReduceOp::sum ? "reduce_sum" : op == ReduceOp::max ? "reduce_max" : "reduce_min";
  }

  std::string tile_of(int value) const {
    auto found = std::find_if(buffers_.begin(), buffers_.end(), [&](auto& buffer) { return buffer.value == value; });
    return found->name;
  }

  void write_reduction(int id) {
    const Primitive& p = graph_.at(id);
    const std::string& target = in_two_steps() ? partials_[id] : statistics_[id];
    const bool along_columns = tiles_.row >= 0 && tiles_.loop(tiles_.column).reduced;
    const int axis = along_columns && !(in_two_steps() && tiles_.rows_first) ? 1 : 0;
    line(fmt::format("T.{}({}, {}, dim={}{})", function_of(p.reduction), tile_of(p.args[0]), target, axis,
                     tiles_.resident() ? "" : ", clear=False"));
  }

  void finish_reduction(int id) {
    if (!in_two_steps()) return;
    line(fmt::format("T.{}({}, {}, dim=0)", function_of(graph_.at(id).reduction), partials_[id], statistics_[id]));
  }

  // Two reductions in one pass: each place of the tile has values of its own, of the steps that it takes part in.

  struct Places {
    std::string first, second;  // tiles
    StepCounts steps;
  };
  std::optional<Places> places_;

  void start_pair(const OnePass& pair) {
    const bool are_moments = pair.kind == OnePass::Kind::moments;
    start_reduction(pair.first);
    start_reduction(pair.second);
    const std::string first = allocate(are_moments ? "means" : "highest_of_place", indices_.tile_shape(), pair.first);
    const std::string second = allocate(are_moments ? "squares" : "total_of_place", indices_.tile_shape(), pair.second);
    places_.emplace(Places{first, second, {tiles_, indices_}});
    line(are_moments ? fmt::format("T.clear({})", places_->first)
                     : fmt::format("T.fill({}, {})", places_->first, lowest(dtype_of(pair))));
    line(fmt::format("T.clear({})", places_->second));
    for (auto& loop : indices_.serial()) {
      if (!are_moments || !places_->steps.is_ragged(loop.loop)) continue;
      const std::string steps = pool_.take("steps");
      line(fmt::format("{} = {}", steps, loop.count));
      places_->steps.name(loop.loop, steps);
    }
  }

  std::string dtype_of(const OnePass& pair) const { return compute_dtype(graph_.at(pair.first).dtype); }
  // A number below which are none but infinity, from which differences are no NaN.
  static std::string lowest(const std::string& dtype) {
    return number_text(dtype == "float64" ? std::numeric_limits<double>::lowest()
                                          : static_cast<double>(std::numeric_limits<float>::lowest()),
                       dtype);
  }

  void write_pair_step(const OnePass& pair) {
    const bool are_moments = pair.kind == OnePass::Kind::moments;
    const int inner = places_->steps.inner_ragged();
    std::string share, longer;
    if (are_moments) {
      const std::string dtype = dtype_text(dtype_of(pair));
      share = pool_.take("share");
      line(fmt::format("{} = 1.0 / T.cast({}, {})", share, places_->steps.taken(false), dtype));
      if (inner >= 0) longer = pool_.take("share_without_last");
      if (inner >= 0) line(fmt::format("{} = 1.0 / T.cast({}, {})", longer, places_->steps.taken(true), dtype));
    }
    open_tile_loop();
    std::vector<int> lets = write_lets({pair.value});
    if (!are_moments && !expressions_.has_name(pair.value)) write_let(pair.value, lets);
    const std::string first = tile_element(places_->first), second = tile_element(places_->second);
    const std::string delta = pool_.take("delta");
    const std::string value = expressions_.write(pair.value, info(ScalarOp::sub).precedence);
    line(fmt::format(
        "{} = {}", delta,
        where_in_range(fmt::format("{} - {}", value, first), are_moments ? "0.0" : identity(ReduceOp::max))));
    if (are_moments) {
      if (inner >= 0) {
        const std::string own = pool_.take("own_share");
        line(fmt::format("{} = T.if_then_else({}, {}, {})", own, places_->steps.in_last_step(inner), share, longer));
        share = own;
      }
      line(fmt::format("{0} = {0} + {1} * {1} * (1.0 - {2})", second, delta, share));
      line(fmt::format("{0} = {0} + {1} * {2}", first, delta, share));
    } else {
      // One exponential an element: of what the sum or the element is multiplied by, whichever is the lower.
      const std::string power = pool_.take("power");
      line(fmt::format("{} = T.exp(-T.abs({}))", power, delta));
      line(fmt::format("{0} = T.if_then_else({1} > 0.0, {0} * {2} + 1.0, {0} + {2})", second, delta, power));
      line(fmt::format("{0} = T.if_then_else({1} > 0.0, {2}, {0})", first, delta, value));
    }
    --depth_;
    for (int id : lets) expressions_.forget(id);
  }

  std::string where_in_range(const std::string& text, const std::string& otherwise) const {
    std::vector<std::string> inside;
    for (int loop : tiles_.ragged())
      inside.push_back(fmt::format("{} < {}", indices_.index(loop), tiles_.loop(loop).size));
    return inside.empty() ? text
                          : fmt::format("T.if_then_else({}, {}, {})", fmt::join(inside, " and "), text, otherwise);
  }

  // The first reduction, from what places have, and the second, which needs its result.
  void finish_pair(const OnePass& pair) {
    const bool are_moments = pair.kind == OnePass::Kind::moments;
    const std::string tile = allocate("tile", indices_.tile_shape(), pair.first);
    const std::string first = tile_element(places_->first), second = tile_element(places_->second);
    const std::string count = are_moments ? pool_.take("count") : "", offset = are_moments ? pool_.take("offset") : "";
    const auto put_together = [&](int id, const std::string& what) {
      line(fmt::format("{} = {}", tile_element(tile), what));
      --depth_;
      buffers_.insert(buffers_.begin(), {tile, graph_.at(id).args[0]});
      write_reduction(id);
      finish_reduction(id);
      if (tiles_.split > 1) share_reductions({id});
      buffers_.erase(buffers_.begin());
    };
    const auto open = [&] {
      open_tile_loop();
      if (are_moments)
        line(fmt::format("{} = T.cast({}, {})", count, places_->steps.in_all(), dtype_text(dtype_of(pair))));
    };
    open();
    // A place that has met nothing but -infinity has a sum of zero.
    put_together(pair.first, are_moments ? fmt::format("{} * {}", first, count)
                                         : fmt::format("T.if_then_else({} == 0.0, {}, {})", second,
                                                       identity(ReduceOp::max), first));
    open();
    if (are_moments) {
      line(fmt::format("{} = {} - {}", offset, first,
                       expressions_.write(pair.mean, info(ScalarOp::sub).precedence + 1)));
      put_together(pair.second, fmt::format("{} + {} * {} * {}", second, offset, offset, count));
    } else {
      put_together(pair.second, fmt::format("{} * T.exp({} - {})", second, first, expressions_.write(pair.first)));
    }
  }

  // What each block has reduced of its steps, put together by all of them.
  void share_reductions(const std::vector<int>& reductions) {
    const std::string size = indices_.statistic_size(), index = indices_.statistic_index();
    const bool one = index == "0";
    const std::string all = indices_.statistic_shape(), place = indices_.statistic_place();
    const auto after = [](const std::string& text) { return text.empty() ? text : ", " + text; };
    std::map<int, std::string> shared;
    for (int id : reductions) {
      shared[id] = pool_.take(statistics_[id] + "_parts");
      allocations_.push_back(fmt::format("{} = T.alloc_global((split{}), {})", shared[id],
                                         all.empty() ? "," : ", " + all,
                                         dtype_text(compute_dtype(graph_.at(id).dtype))));
      line(fmt::format("for {} in T.Parallel({}):", one ? "i" : index, size));
      line(fmt::format("    {}[{}{}] = {}[{}]", shared[id], indices_.part(), after(place), statistics_[id], index));
    }
    line("T.sync_grid()");
    for (int id : reductions) {
      const std::string tile = allocate(statistics_[id] + "_of_parts", one ? "split" : "split, " + size, id);
      line(one ? "for k in T.Parallel(split):" : fmt::format("for k, {} in T.Parallel(split, {}):", index, size));
      line(fmt::format("    {}[k{}] = {}[k{}]", tile, one ? "" : ", " + index, shared[id], after(place)));
      line(fmt::format("T.{}({}, {}, dim=0)", function_of(graph_.at(id).reduction), tile, statistics_[id]));
    }
  }

  // Values per row

  // The fragment of a reduction that only this value reads serves it as well.
  std::string fragment_for(int id) {
    for (int arg : graph_.at(id).args) {
      if (!statistics_.count(arg) || std::count(group_.outputs.begin(), group_.outputs.end(), arg)) continue;
      bool shared = std::any_of(group_.members.begin(), group_.members.end(), [&](int user) {
        auto& args = graph_.at(user).args;
        return user != id && std::count(args.begin(), args.end(), arg);
      });
      if (!shared && graph_.at(arg).dtype == graph_.at(id).dtype) return statistics_[arg];
    }
    return allocate(hint_or(graph_.at(id), info_name(id)), indices_.statistic_size(), id);
  }

  // Of blocks that share a reduction all need what follows from it, and one writes it.
  void write_statistics(const Phase& phase) {
    if (tiles_.split == 1 || phase.statistic_outputs.empty())
      return write_statistics(phase.statistics, phase.statistic_outputs);
    write_statistics(phase.statistics, {});
    line(fmt::format("if {} == 0:", indices_.part()));
    ++depth_;
    write_statistics({}, phase.statistic_outputs);
    --depth_;
  }

  void write_statistics(const std::vector<int>& kept, const std::vector<int>& outputs) {
    std::vector<int> roots = kept;
    roots.insert(roots.end(), outputs.begin(), outputs.end());
    if (roots.empty()) return;
    std::string variable = indices_.statistic_index() == "0" ? "i" : indices_.statistic_index();
    line(fmt::format("for {} in T.Parallel({}):", variable, indices_.statistic_size()));
    ++depth_;
    std::vector<int> lets = write_lets(roots);
    for (int id : kept) {
      std::string value = expressions_.write(id);
      statistics_[id] = fragment_for(id);
      std::string target = fmt::format("{}[{}]", statistics_[id], indices_.statistic_index());
      line(fmt::format("{} = {}", target, value));
      expressions_.name(id, target);
    }
    for (int id : outputs)
      line(fmt::format("{} = {}", indices_.element(signature_.name_of.at(id), signature_.access_of.at(id)),
                       expressions_.write(id)));
    --depth_;
    for (int id : lets) expressions_.forget(id);
    for (int id : kept) expressions_.name(id, fmt::format("{}[{}]", statistics_[id], indices_.statistic_index()));
  }
};

}  // namespace

size_t KernelText::new_results() const {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(), [](auto& result) { return result.argument < 0; }));
}

std::string frame_program(const KernelSignature& signature, const std::string& launch,
                          const std::vector<std::string>& lines) {
  std::vector<std::string> parameters;
  for (auto& p : signature.parameters)
    parameters.push_back(fmt::format("{}: T.Tensor({}, {})", p.name, p.shape,
                                     p.dtype == signature.dtype ? "dtype" : "\"" + p.dtype + "\""));
  std::string one_line = fmt::format("    def main({}):\n", fmt::join(parameters, ", "));
  std::string text = "    @T.prim_func\n";
  text += one_line.size() <= 94
              ? one_line
              : fmt::format("    def main(\n        {},\n    ):\n", fmt::join(parameters, ",\n        "));
  text += fmt::format("        with {}:\n", launch);
  for (auto& line : lines) text += "            " + line + "\n";
  return text + "\n    return main\n";
}

std::optional<KernelText> write_kernel(const KernelRequest& request) { return KernelWriter(request).run(); }

}  // namespace tilepilot::agent::builtin
