// Convolutions of torch.nn, plain and transposed.
#include <ATen/ATen.h>

#include <cmath>

#include "eval/host/layers/initializers.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using at::Tensor;
using c10::IValue;
using Extents = std::vector<int64_t>;

void check_channels(A config) {
  int64_t groups = config.integer("groups");
  TORCH_CHECK(groups > 0, "groups must be a positive integer");
  TORCH_CHECK(config.integer("in_channels") % groups == 0, "in_channels must be divisible by groups");
  TORCH_CHECK(config.integer("out_channels") % groups == 0, "out_channels must be divisible by groups");
}

void create_weights(NnModule& m, A config, bool transposed) {
  check_channels(config);
  int64_t in = config.integer("in_channels"), out = config.integer("out_channels"), groups = config.integer("groups");
  Extents shape = transposed ? Extents{in, out / groups} : Extents{out, in / groups};
  for (int64_t extent : config.integers("kernel_size")) shape.push_back(extent);
  m.add_parameter("weight", shape, config);
  m.add_parameter("bias", {out}, config, config.flag("bias"));
}

void create_plain(NnModule& m, A config) { create_weights(m, config, false); }
void create_transposed(NnModule& m, A config) { create_weights(m, config, true); }

void reset_convolution(NnModule& m, A) {
  init_kaiming_default(m.weight("weight"));
  auto bias = m.tensor("bias");
  int64_t fan_in = fans(m.weight("weight")).first;
  if (!bias || fan_in == 0) return;
  double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  bias->uniform_(-bound, bound);
}

// The padding in the order F.pad wants it: last dimension first, both sides.
Extents both_sides(A config) {
  Extents kernel = config.integers("kernel_size"), dilation = config.integers("dilation"), sides;
  bool by_name = config["padding"].isString();
  for (size_t i = kernel.size(); i-- > 0;) {
    if (!by_name) {
      int64_t padding = config.integers("padding")[i];
      sides.insert(sides.end(), {padding, padding});
      continue;
    }
    int64_t total = config.text("padding") == "same" ? dilation[i] * (kernel[i] - 1) : 0;
    sides.insert(sides.end(), {total / 2, total - total / 2});
  }
  return sides;
}

using Convolve = Tensor (*)(const Tensor&, const Tensor&, const std::optional<Tensor>&, at::IntArrayRef,
                            at::IntArrayRef, at::IntArrayRef, int64_t);
using ConvolveNamed = Tensor (*)(const Tensor&, const Tensor&, const std::optional<Tensor>&, at::IntArrayRef,
                                 std::string_view, at::IntArrayRef, int64_t);

IValue convolve(NnModule& m, A config, A inputs, std::pair<Convolve, ConvolveNamed> functions) {
  Tensor input = inputs.tensor("input"), weight = m.weight("weight");
  auto bias = m.tensor("bias");
  Extents stride = config.integers("stride"), dilation = config.integers("dilation");
  int64_t groups = config.integer("groups");
  std::string mode = config.text("padding_mode");
  if (mode != "zeros") {
    Extents none(stride.size(), 0);
    Tensor padded = at::pad(input, both_sides(config), mode);
    return functions.first(padded, weight, bias, stride, none, dilation, groups);
  }
  if (config["padding"].isString()) {
    return functions.second(input, weight, bias, stride, config.text("padding"), dilation, groups);
  }
  return functions.first(input, weight, bias, stride, config.integers("padding"), dilation, groups);
}

#define TP_CONVOLVE(function)                                                                                        \
  [](NnModule& m, A config, A inputs) -> IValue {                                                                    \
    return convolve(                                                                                                 \
        m, config, inputs,                                                                                           \
        {[](const Tensor& x, const Tensor& w, const std::optional<Tensor>& b, at::IntArrayRef s, at::IntArrayRef p,  \
            at::IntArrayRef d, int64_t g) { return at::function(x, w, b, s, p, d, g); },                             \
         [](const Tensor& x, const Tensor& w, const std::optional<Tensor>& b, at::IntArrayRef s, std::string_view p, \
            at::IntArrayRef d, int64_t g) { return at::function(x, w, b, s, p, d, g); }});                           \
  }

// The extra rows at the end of a transposed convolution: as the layer says, or what the wanted size needs.
Extents output_padding(A config, A inputs) {
  if (!inputs.given("output_size")) return config.integers("output_padding");
  Extents wanted = inputs.integers("output_size"), kernel = config.integers("kernel_size"),
          stride = config.integers("stride"), padding = config.integers("padding"),
          dilation = config.integers("dilation"), extra;
  size_t skip = wanted.size() - kernel.size();
  auto first = inputs.tensor("input").dim() - static_cast<int64_t>(kernel.size());
  for (size_t i = 0; i < kernel.size(); ++i) {
    int64_t least = (inputs.tensor("input").size(first + static_cast<int64_t>(i)) - 1) * stride[i] - 2 * padding[i] +
                    dilation[i] * (kernel[i] - 1) + 1;
    extra.push_back(wanted[i + skip] - least);
    TORCH_CHECK(extra[i] >= 0 && extra[i] < stride[i], "requested an output size of ", wanted,
                ", which this transposed convolution cannot give");
  }
  return extra;
}

#define TP_TRANSPOSED(function)                                                                                  \
  [](NnModule& m, A config, A inputs) -> IValue {                                                                \
    return at::function(inputs.tensor("input"), m.weight("weight"), m.tensor("bias"), config.integers("stride"), \
                        config.integers("padding"), output_padding(config, inputs), config.integer("groups"),    \
                        config.integers("dilation"));                                                            \
  }

#define TP_FACTORY ", Device? device=None, ScalarType? dtype=None"
#define TP_CONVOLUTION(n, padding)                                                                                 \
  "Conv" n "d(int in_channels, int out_channels, int[" n "] kernel_size, int[" n "] stride=1, " padding ", int[" n \
  "] dilation=1, int groups=1, bool bias=True, str padding_mode='zeros'" TP_FACTORY ")"
#define TP_BY_SIZE(n) TP_CONVOLUTION(n, "int[" n "] padding=0")
#define TP_BY_NAME(n) TP_CONVOLUTION(n, "str padding='valid'")
#define TP_TRANSPOSED_CONVOLUTION(n)                                                                           \
  "ConvTranspose" n "d(int in_channels, int out_channels, int[" n "] kernel_size, int[" n "] stride=1, int[" n \
  "] padding=0, int[" n "] output_padding=0, int groups=1, bool bias=True, int[" n                             \
  "] dilation=1, str padding_mode='zeros'" TP_FACTORY ")"
#define TP_OUTPUT_SIZE "forward(Tensor input, int[]? output_size=None)"

const LayerRow kConvolutionLayers[] = {
    {TP_BY_SIZE("1"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv1d)},
    {TP_BY_NAME("1"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv1d)},
    {TP_BY_SIZE("2"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv2d)},
    {TP_BY_NAME("2"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv2d)},
    {TP_BY_SIZE("3"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv3d)},
    {TP_BY_NAME("3"), nullptr, 1, create_plain, reset_convolution, "forward(Tensor input)", TP_CONVOLVE(conv3d)},
    {TP_TRANSPOSED_CONVOLUTION("1"), nullptr, 1, create_transposed, reset_convolution, TP_OUTPUT_SIZE,
     TP_TRANSPOSED(conv_transpose1d)},
    {TP_TRANSPOSED_CONVOLUTION("2"), nullptr, 1, create_transposed, reset_convolution, TP_OUTPUT_SIZE,
     TP_TRANSPOSED(conv_transpose2d)},
    {TP_TRANSPOSED_CONVOLUTION("3"), nullptr, 1, create_transposed, reset_convolution, TP_OUTPUT_SIZE,
     TP_TRANSPOSED(conv_transpose3d)},
};

}  // namespace

LayerTable convolution_layers() { return kConvolutionLayers; }

}  // namespace tilepilot::eval
