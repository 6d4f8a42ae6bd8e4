#include "eval/worker/candidate/aten_policy.h"

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tilepilot::eval {
namespace {

// Sorted. What gives another view of memory that is there, or memory without values.
constexpr std::string_view kAtenViews[] = {
    "_reshape_alias",   "_unsafe_view", "alias",      "as_strided", "chunk",
    "detach",           "diagonal",     "empty",      "empty_like", "empty_strided",
    "expand",           "expand_as",    "lift_fresh", "movedim",    "narrow",
    "new_empty",        "permute",      "select",     "slice",      "split",
    "split_with_sizes", "squeeze",      "squeeze_",   "swapaxes",   "t",
    "tensor_split",     "transpose",    "unbind",     "unflatten",  "unfold",
    "unsafe_chunk",     "unsafe_split", "unsqueeze",  "unsqueeze_", "view",
    "view_as"};
// Sorted. What puts values somewhere else, in another type or the same constant everywhere.
constexpr std::string_view kAtenMoves[] = {"_copy_from",
                                           "_index_put_impl_",
                                           "_local_scalar_dense",
                                           "_to_copy",
                                           "arange",
                                           "block_diag",
                                           "cat",
                                           "clone",
                                           "concat",
                                           "constant_pad_nd",
                                           "copy",
                                           "copy_",
                                           "embedding",
                                           "eye",
                                           "fill",
                                           "fill_",
                                           "flip",
                                           "full",
                                           "full_like",
                                           "gather",
                                           "hstack",
                                           "index",
                                           "index_copy",
                                           "index_copy_",
                                           "index_fill",
                                           "index_fill_",
                                           "index_put",
                                           "index_put_",
                                           "index_select",
                                           "item",
                                           "masked_fill",
                                           "masked_fill_",
                                           "masked_scatter",
                                           "masked_scatter_",
                                           "masked_select",
                                           "new_full",
                                           "new_ones",
                                           "new_zeros",
                                           "ones",
                                           "ones_like",
                                           "repeat",
                                           "repeat_interleave",
                                           "roll",
                                           "rot90",
                                           "scalar_tensor",
                                           "scatter",
                                           "scatter_",
                                           "slice_scatter",
                                           "stack",
                                           "take",
                                           "tile",
                                           "unfold_copy",
                                           "vstack",
                                           "where",
                                           "zero_",
                                           "zeros",
                                           "zeros_like"};
// Sorted. What calls others to do its work, or does nothing where there is nothing to do.
constexpr std::string_view kAtenComposites[] = {
    "broadcast_tensors", "broadcast_to", "contiguous",   "flatten",     "pad", "ravel",
    "reshape",           "reshape_as",   "resolve_conj", "resolve_neg", "to"};

template <size_t N>
bool aten_lists(const std::string_view (&names)[N], std::string_view name) {
  return std::binary_search(std::begin(names), std::end(names), name);
}

// LibTorch's callbacks are plain functions. What they find, for the thread that watches.
struct AtenRecord {
  AtenPolicy policy = AtenPolicy::any;
  const stage::StatementMarker* place = nullptr;
  int inside = 0;  // operators under way below one that was judged
  std::string offender;
  Span at;
};
thread_local AtenRecord aten_record;

struct EnteredOperator final : at::ObserverContext {};

bool policy_allows(AtenPolicy policy, AtenWork work) {
  return work == AtenWork::none || (work == AtenWork::moves && policy != AtenPolicy::none);
}

// Two operators that move data also sum, if they are told to.
AtenWork work_of(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  const auto inputs = function.inputs();
  constexpr size_t kAccumulate = 3, kReduce = 4;
  const bool puts = name.find("index_put") != std::string_view::npos;
  if (puts && inputs.size() > kAccumulate && inputs[kAccumulate].isBool() && inputs[kAccumulate].toBool())
    return AtenWork::computes;
  const bool scatters = name == "aten::scatter" || name == "aten::scatter_";
  return scatters && inputs.size() > kReduce ? AtenWork::computes : aten_work(name);
}

std::unique_ptr<at::ObserverContext> enter_operator(const at::RecordFunction& function) {
  if (aten_record.inside == 0) {
    const AtenWork work = work_of(function);
    if (work == AtenWork::composite) return nullptr;
    if (aten_record.offender.empty() && !policy_allows(aten_record.policy, work)) {
      aten_record.offender = function.name();
      aten_record.at = {aten_record.place->file, aten_record.place->offset, aten_record.place->offset};
    }
  }
  ++aten_record.inside;
  return std::make_unique<EnteredOperator>();
}

void leave_operator(const at::RecordFunction&, at::ObserverContext* entered) {
  if (entered) --aten_record.inside;
}

}  // namespace

std::optional<AtenPolicy> parse_aten_policy(std::string_view name) {
  if (name == "none") return AtenPolicy::none;
  if (name == "data") return AtenPolicy::data;
  if (name == "hybrid") return AtenPolicy::hybrid;
  if (name == "any") return AtenPolicy::any;
  return std::nullopt;
}

AtenWork aten_work(std::string_view name) {
  constexpr std::string_view kPrefix = "aten::";
  if (name.substr(0, kPrefix.size()) != kPrefix) return AtenWork::computes;
  name.remove_prefix(kPrefix.size());
  if (aten_lists(kAtenViews, name)) return AtenWork::none;
  if (aten_lists(kAtenMoves, name)) return AtenWork::moves;
  return aten_lists(kAtenComposites, name) ? AtenWork::composite : AtenWork::computes;
}

AtenWatch::AtenWatch(AtenPolicy policy, const stage::StatementMarker& place) : policy_(policy) {
  if (policy == AtenPolicy::hybrid || policy == AtenPolicy::any) return;
  aten_record = {policy, &place, 0, {}, {}};
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(enter_operator, leave_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

AtenWatch::~AtenWatch() {
  if (callback_) at::removeCallback(*callback_);
}

std::string AtenWatch::offender() const { return callback_ ? aten_record.offender : std::string(); }

Span AtenWatch::place() const { return aten_record.at; }

Status AtenWatch::status() const {
  if (!callback_ || aten_record.offender.empty()) return {};
  const bool computes = aten_work(aten_record.offender) == AtenWork::computes;
  return make_error(
      DiagnosticKind::forbidden, aten_record.at,
      fmt::format("`forward` calls `{}`, which {}: the policy `--aten {}` does not allow that", aten_record.offender,
                  computes ? "computes" : "moves data", policy_ == AtenPolicy::none ? "none" : "data"),
      "do it in a generated kernel, or judge with another `--aten`");
}

}  // namespace tilepilot::eval
