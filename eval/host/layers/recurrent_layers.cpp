// Recurrent layers and cells of torch.nn.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using at::Tensor;
using c10::IValue;

struct Shape {
  int64_t gates, hidden, projected, directions;
  bool bias;
};

void create_layer(NnModule& m, A config, int64_t layer, const Shape& s) {
  int64_t real_hidden = s.projected > 0 ? s.projected : s.hidden;
  int64_t input = layer == 0 ? config.integer("input_size") : real_hidden * s.directions;
  for (int64_t direction = 0; direction < s.directions; ++direction) {
    std::string suffix = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
    m.add_parameter("weight_ih" + suffix, {s.gates * s.hidden, input}, config);
    m.add_parameter("weight_hh" + suffix, {s.gates * s.hidden, real_hidden}, config);
    if (s.bias) {
      m.add_parameter("bias_ih" + suffix, {s.gates * s.hidden}, config);
      m.add_parameter("bias_hh" + suffix, {s.gates * s.hidden}, config);
    }
    if (s.projected > 0) m.add_parameter("weight_hr" + suffix, {s.projected, s.hidden}, config);
  }
}

template <int gates, bool projects>
void create_recurrent(NnModule& m, A config) {
  Shape shape{gates, config.integer("hidden_size"), 0, config.flag("bidirectional") ? 2 : 1, config.flag("bias")};
  if constexpr (projects) shape.projected = config.integer("proj_size");
  TORCH_CHECK(shape.hidden > 0, "hidden_size must be greater than zero");
  for (int64_t layer = 0; layer < config.integer("num_layers"); ++layer) create_layer(m, config, layer, shape);
}

template <int gates>
void create_cell(NnModule& m, A config) {
  int64_t hidden = config.integer("hidden_size");
  bool bias = config.flag("bias");
  m.add_parameter("weight_ih", {gates * hidden, config.integer("input_size")}, config);
  m.add_parameter("weight_hh", {gates * hidden, hidden}, config);
  m.add_parameter("bias_ih", {gates * hidden}, config, bias);
  m.add_parameter("bias_hh", {gates * hidden}, config, bias);
}

void reset_recurrent(NnModule& m, A config) {
  double bound = 1.0 / std::sqrt(static_cast<double>(config.integer("hidden_size")));
  for (const NnModule::Entry& entry : m.parameters()) {
    if (auto* tensor = tensor_of(entry.value)) tensor->uniform_(-bound, bound);
  }
}

std::vector<Tensor> flat_weights(NnModule& m) {
  std::vector<Tensor> weights;
  for (const NnModule::Entry& entry : m.parameters()) weights.push_back(*tensor_of(entry.value));
  return weights;
}

// A run over a sequence: the input with its batch dimension, and the first state.
struct Run {
  Tensor input;
  bool batched;
  int64_t batch_dim;
  std::vector<Tensor> state;
};

Run prepare(NnModule& m, A config, const Tensor& input, std::vector<Tensor> state, std::vector<int64_t> state_sizes) {
  TORCH_CHECK(input.dim() == 2 || input.dim() == 3, "expected input to be 2D or 3D, got ", input.dim(), "D instead");
  Run run{input, input.dim() == 3, config.flag("batch_first") ? 0 : 1, std::move(state)};
  if (!run.batched) run.input = input.unsqueeze(run.batch_dim);
  int64_t layers = config.integer("num_layers") * (config.flag("bidirectional") ? 2 : 1);
  if (run.state.empty()) {
    for (int64_t size : state_sizes) {
      run.state.push_back(at::zeros({layers, run.input.size(run.batch_dim), size}, input.options()));
    }
  } else if (!run.batched) {
    for (Tensor& tensor : run.state) tensor = tensor.unsqueeze(1);
  }
  int64_t wanted = config.integer("input_size");
  TORCH_CHECK(run.input.size(-1) == wanted, "input.size(-1) must be equal to input_size. Expected ", wanted, ", got ",
              run.input.size(-1));
  TORCH_CHECK(run.state.size() == state_sizes.size(), "expected ", state_sizes.size(), " states for ", m.type_name());
  return run;
}

Tensor without_batch(const Run& run, const Tensor& tensor, int64_t dim) {
  return run.batched ? tensor : tensor.squeeze(dim);
}

IValue lstm(NnModule& m, A config, A inputs) {
  int64_t hidden = config.integer("hidden_size"), projected = config.integer("proj_size");
  std::vector<Tensor> given;
  if (inputs.given("hx")) given = inputs.tensors("hx");
  Run run = prepare(m, config, inputs.tensor("input"), given, {projected > 0 ? projected : hidden, hidden});
  auto [output, h, c] =
      at::lstm(run.input, run.state, flat_weights(m), config.flag("bias"), config.integer("num_layers"),
               config.real("dropout"), m.training(), config.flag("bidirectional"), config.flag("batch_first"));
  auto state = c10::ivalue::Tuple::create(without_batch(run, h, 1), without_batch(run, c, 1));
  return c10::ivalue::Tuple::create(IValue(without_batch(run, output, run.batch_dim)), IValue(state));
}

using Recurrence = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, at::TensorList, bool, int64_t, double,
                                                  bool, bool, bool);

IValue recurrent(NnModule& m, A config, A inputs, Recurrence function) {
  std::vector<Tensor> given;
  if (auto state = inputs.maybe_tensor("hx")) given.push_back(*state);
  Run run = prepare(m, config, inputs.tensor("input"), given, {config.integer("hidden_size")});
  auto [output, h] =
      function(run.input, run.state[0], flat_weights(m), config.flag("bias"), config.integer("num_layers"),
               config.real("dropout"), m.training(), config.flag("bidirectional"), config.flag("batch_first"));
  return c10::ivalue::Tuple::create(without_batch(run, output, run.batch_dim), without_batch(run, h, 1));
}

#define TP_RECURRENCE(function)                                                                                 \
  [](const Tensor& x, const Tensor& h, at::TensorList w, bool bias, int64_t layers, double dropout, bool train, \
     bool two_ways,                                                                                             \
     bool batch_first) { return at::function(x, h, w, bias, layers, dropout, train, two_ways, batch_first); }

IValue gru(NnModule& m, A config, A inputs) { return recurrent(m, config, inputs, TP_RECURRENCE(gru)); }

IValue rnn(NnModule& m, A config, A inputs) {
  bool relu = config.text("nonlinearity") == "relu";
  return recurrent(m, config, inputs, relu ? TP_RECURRENCE(rnn_relu) : TP_RECURRENCE(rnn_tanh));
}

// The first state of a cell that is given none.
Tensor zero_state(A config, const Tensor& input) {
  return at::zeros({input.size(0), config.integer("hidden_size")}, input.options());
}

IValue lstm_cell(NnModule& m, A config, A inputs) {
  Tensor input = inputs.tensor("input");
  bool batched = input.dim() == 2;
  if (!batched) input = input.unsqueeze(0);
  std::vector<Tensor> state;
  if (inputs.given("hx")) {
    state = inputs.tensors("hx");
    TORCH_CHECK(state.size() == 2, "LSTMCell takes the states h and c");
    if (!batched) state = {state[0].unsqueeze(0), state[1].unsqueeze(0)};
  } else {
    Tensor zeros = zero_state(config, input);
    state = {zeros, zeros};
  }
  auto [h, c] = at::lstm_cell(input, state, m.weight("weight_ih"), m.weight("weight_hh"), m.tensor("bias_ih"),
                              m.tensor("bias_hh"));
  if (batched) return c10::ivalue::Tuple::create(h, c);
  return c10::ivalue::Tuple::create(h.squeeze(0), c.squeeze(0));
}

using Cell = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&,
                        const std::optional<Tensor>&);

IValue cell(NnModule& m, A config, A inputs, Cell function) {
  Tensor input = inputs.tensor("input");
  bool batched = input.dim() == 2;
  if (!batched) input = input.unsqueeze(0);
  auto given = inputs.maybe_tensor("hx");
  Tensor state = !given ? zero_state(config, input) : batched ? *given : given->unsqueeze(0);
  Tensor result =
      function(input, state, m.weight("weight_ih"), m.weight("weight_hh"), m.tensor("bias_ih"), m.tensor("bias_hh"));
  return batched ? result : result.squeeze(0);
}

#define TP_CELL(function)                                                                                \
  [](const Tensor& x, const Tensor& h, const Tensor& a, const Tensor& b, const std::optional<Tensor>& c, \
     const std::optional<Tensor>& d) { return at::function(x, h, a, b, c, d); }

IValue gru_cell(NnModule& m, A config, A inputs) { return cell(m, config, inputs, TP_CELL(gru_cell)); }

IValue rnn_cell(NnModule& m, A config, A inputs) {
  bool relu = config.text("nonlinearity") == "relu";
  return cell(m, config, inputs, relu ? TP_CELL(rnn_relu_cell) : TP_CELL(rnn_tanh_cell));
}

#define TP_FACTORY ", Device? device=None, ScalarType? dtype=None"
#define TP_RUN "bool bias=True, bool batch_first=False, float dropout=0.0, bool bidirectional=False"

const LayerRow kRecurrentLayers[] = {
    {"LSTM(int input_size, int hidden_size, int num_layers=1, " TP_RUN ", int proj_size=0" TP_FACTORY ")", nullptr, 1,
     create_recurrent<4, true>, reset_recurrent, "forward(Tensor input, Tensor[]? hx=None)", lstm},
    {"GRU(int input_size, int hidden_size, int num_layers=1, " TP_RUN TP_FACTORY ")", nullptr, 1,
     create_recurrent<3, false>, reset_recurrent, "forward(Tensor input, Tensor? hx=None)", gru},
    {"RNN(int input_size, int hidden_size, int num_layers=1, str nonlinearity='tanh', " TP_RUN TP_FACTORY ")", nullptr,
     1, create_recurrent<1, false>, reset_recurrent, "forward(Tensor input, Tensor? hx=None)", rnn},
    {"LSTMCell(int input_size, int hidden_size, bool bias=True" TP_FACTORY ")", nullptr, 1, create_cell<4>,
     reset_recurrent, "forward(Tensor input, Tensor[]? hx=None)", lstm_cell},
    {"GRUCell(int input_size, int hidden_size, bool bias=True" TP_FACTORY ")", nullptr, 1, create_cell<3>,
     reset_recurrent, "forward(Tensor input, Tensor? hx=None)", gru_cell},
    {"RNNCell(int input_size, int hidden_size, bool bias=True, str nonlinearity='tanh'" TP_FACTORY ")", nullptr, 1,
     create_cell<1>, reset_recurrent, "forward(Tensor input, Tensor? hx=None)", rnn_cell},
};

}  // namespace

LayerTable recurrent_layers() { return kRecurrentLayers; }

}  // namespace tilepilot::eval
