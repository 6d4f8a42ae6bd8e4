#include "eval/host/tensors/tensor_text.h"

#include <ATen/ATen.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>

#include <cmath>
#include <sstream>

namespace tilepilot::eval {

namespace {

constexpr int64_t kMostElements = 1000, kEdge = 3, kLineWidth = 80;
constexpr std::string_view kPrefix = "tensor(";

// All elements of one tensor get one width and one notation.
class ElementFormat {
 public:
  explicit ElementFormat(const at::Tensor& shown) : is_float_(shown.is_floating_point()) {
    at::Tensor flat = shown.reshape({-1});
    if (is_float_) {
      choose_notation(flat.to(at::kDouble));
    } else {
      for (int64_t i = 0; i < flat.numel(); ++i) widen(text(flat[i]));
    }
  }

  std::string padded(const at::Tensor& element) const { return fmt::format("{:>{}}", text(element), width_); }
  int64_t width() const { return static_cast<int64_t>(width_); }

 private:
  void choose_notation(const at::Tensor& values) {
    at::Tensor counted = values.masked_select(values.isfinite() & values.ne(0));
    if (counted.numel() == 0) return;
    at::Tensor sizes = counted.abs();
    const double least = sizes.min().item<double>(), greatest = sizes.max().item<double>();
    is_whole_ = counted.eq(counted.ceil()).all().item<bool>();
    is_scientific_ = greatest / least > 1000.0 || greatest > 1e8 || (!is_whole_ && least < 1e-4);
    for (int64_t i = 0; i < counted.numel(); ++i) widen(real_text(counted[i].item<double>()));
  }

  std::string real_text(double value) const {
    if (is_scientific_) return fmt::format("{:.4e}", value);
    if (!is_whole_) return fmt::format("{:.4f}", value);
    return std::isfinite(value) ? fmt::format("{:.0f}.", value) : fmt::format("{}", value);
  }

  std::string text(const at::Tensor& element) const {
    if (is_float_) return real_text(element.to(at::kDouble).item<double>());
    if (element.scalar_type() == at::kBool) return element.item<bool>() ? "True" : "False";
    return std::to_string(element.to(at::kLong).item<int64_t>());
  }

  void widen(const std::string& text) { width_ = std::max(width_, text.size()); }

  bool is_float_;
  bool is_whole_ = true;
  bool is_scientific_ = false;
  size_t width_ = 1;
};

// The positions along an axis that are shown; -1 stands for those left out.
std::vector<int64_t> shown_positions(int64_t size, bool cut) {
  std::vector<int64_t> positions;
  const bool leaves_out = cut && size > 2 * kEdge;
  for (int64_t i = 0; i < size; ++i) {
    if (!leaves_out || i < kEdge || i >= size - kEdge) positions.push_back(i);
    if (leaves_out && i == kEdge) positions.push_back(-1);
  }
  return positions;
}

// What is left of a long tensor.
at::Tensor edges(const at::Tensor& tensor, int64_t axis = 0) {
  if (axis == tensor.dim()) return tensor;
  at::Tensor kept = tensor;
  if (tensor.size(axis) > 2 * kEdge) {
    kept = at::cat({tensor.narrow(axis, 0, kEdge), tensor.narrow(axis, tensor.size(axis) - kEdge, kEdge)}, axis);
  }
  return edges(kept, axis + 1);
}

class TensorPrinter {
 public:
  explicit TensorPrinter(const at::Tensor& tensor)
      : cut_(tensor.numel() > kMostElements), format_(cut_ ? edges(tensor) : tensor) {}

  std::string print(const at::Tensor& tensor, int64_t indent) const {
    if (tensor.dim() == 0) return format_.padded(tensor);
    if (tensor.dim() == 1) return print_row(tensor, indent);
    std::vector<std::string> slices;
    for (int64_t i : shown_positions(tensor.size(0), cut_)) {
      slices.push_back(i < 0 ? "..." : print(tensor[i], indent + 1));
    }
    return join(slices, static_cast<size_t>(tensor.dim() - 1), indent);
  }

 private:
  std::string print_row(const at::Tensor& row, int64_t indent) const {
    const int64_t a_line = std::max<int64_t>(1, (kLineWidth - indent) / (format_.width() + 2));
    std::vector<std::string> lines, line;
    for (int64_t i : shown_positions(row.size(0), cut_)) {
      line.push_back(i < 0 ? " ..." : format_.padded(row[i]));
      if (static_cast<int64_t>(line.size()) < a_line) continue;
      lines.push_back(fmt::format("{}", fmt::join(line, ", ")));
      line.clear();
    }
    if (!line.empty()) lines.push_back(fmt::format("{}", fmt::join(line, ", ")));
    return join(lines, 1, indent);
  }

  static std::string join(const std::vector<std::string>& parts, size_t new_lines, int64_t indent) {
    std::string between = "," + std::string(new_lines, '\n') + std::string(static_cast<size_t>(indent + 1), ' ');
    return fmt::format("[{}]", fmt::join(parts, between));
  }

  bool cut_;
  ElementFormat format_;
};

std::string dtype_text(const at::Tensor& tensor) {
  return fmt::format("dtype=torch.{}", c10::getDtypeNames(tensor.scalar_type()).first);
}

// What stands behind the elements.
std::vector<std::string> suffixes_of(const at::Tensor& tensor) {
  std::vector<std::string> suffixes;
  const at::ScalarType type = tensor.scalar_type(), usual = c10::get_default_dtype_as_scalartype();
  const bool is_empty = tensor.numel() == 0;
  if (is_empty && tensor.dim() != 1) {
    std::string extents = fmt::format("{}", fmt::join(tensor.sizes(), ", "));
    suffixes.push_back(fmt::format("size=({}{})", extents, tensor.dim() == 1 ? "," : ""));
  }
  if (type != usual && (is_empty || (type != at::kLong && type != at::kBool))) suffixes.push_back(dtype_text(tensor));
  if (const auto& node = tensor.grad_fn()) {
    suffixes.push_back(fmt::format("grad_fn=<{}>", node->name()));
  } else if (tensor.requires_grad()) {
    suffixes.push_back("requires_grad=True");
  }
  return suffixes;
}

}  // namespace

std::string tensor_text(const at::Tensor& tensor) {
  if (tensor.is_complex() || tensor.layout() != at::kStrided) {
    std::ostringstream text;
    text << tensor;
    return text.str();
  }
  at::Tensor values = tensor.detach().cpu();  // elements are read one by one
  const auto indent = static_cast<int64_t>(kPrefix.size());
  std::string text(kPrefix);
  text += tensor.numel() == 0 ? "[]" : TensorPrinter(values).print(values, indent);
  size_t line_start = text.rfind('\n');
  size_t line = line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1;
  for (const std::string& suffix : suffixes_of(tensor)) {
    const bool breaks = line + suffix.size() + 2 > kLineWidth;
    text += breaks ? ",\n" + std::string(kPrefix.size(), ' ') + suffix : ", " + suffix;
    line = breaks ? kPrefix.size() + suffix.size() : line + suffix.size() + 2;
  }
  return text + ")";
}

}  // namespace tilepilot::eval
