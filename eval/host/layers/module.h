// torch.nn.Module: instances with parameters, buffers and submodules in order of registration, and the native layers
// (nn.Linear, ...) as rows of a table: constructor, weights, forward.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/host/callable.h"
#include "eval/host/host_state.h"

namespace tilepilot::eval {

class NnModule;

// A layer of torch.nn. Either `functional` names the function of torch.nn.functional that forward calls (its first
// `inputs` parameters are forward's, the others are found by name among the layer's weights, its constructor's
// arguments and `training`), or `forward` computes it.
struct LayerRow {
  const char* constructor;  // "Linear(int in_features, int out_features, bool bias=True, ...)"
  const char* functional = nullptr;
  int inputs = 1;
  void (*create)(NnModule&, const Arguments& config) = nullptr;  // registers weights, uninitialised
  void (*reset)(NnModule&, const Arguments& config) = nullptr;   // fills them, in PyTorch's order of random numbers
  const char* forward_signature = nullptr;                       // "forward(Tensor input, Tensor? hx=None)"
  c10::IValue (*forward)(NnModule&, const Arguments& config, const Arguments& inputs) = nullptr;
};
using LayerTable = std::span<const LayerRow>;

// What the function of torch.nn.functional gives for all of its arguments, in order: its first overload, whose types
// are not checked. For layers whose forward only puts them together.
c10::IValue run_functional(NnModule& module, std::string_view name, torch::jit::Stack arguments);

LayerTable linear_layers();       // linear maps, embeddings
LayerTable convolution_layers();  // convolutions and transposed ones
LayerTable norm_layers();         // normalisation
LayerTable recurrent_layers();    // RNN, LSTM, GRU and their cells
LayerTable attention_layers();    // MultiheadAttention
LayerTable stateless_layers();    // activations, pools, dropout, losses, padding, shapes

// One constructor of a native layer, ready to run.
class LayerConstructor {
 public:
  LayerConstructor(HostState& state, const LayerRow& row);
  const Signature& signature() const { return signature_; }
  const LayerRow& row() const { return row_; }
  Result<stage::Value> forward(HostState& state, NnModule& module, const stage::CallArgs& args) const;

 private:
  struct Source {  // where a parameter of the functional comes from
    enum class Kind { input, tensor, config, training, constant } kind;
    stage::Name name{};
    size_t index = 0;
  };
  void bind_functional(HostState& state);
  Result<stage::Value> forward_by_name(HostState& state, NnModule& module, const stage::CallArgs& args) const;

  LayerRow row_;
  Signature signature_;
  std::optional<Signature> forward_signature_;
  const Overload* functional_ = nullptr;
  std::vector<Source> sources_;
};

enum class ContainerKind { none, sequence, mapping };  // Sequential and lists; ModuleDict

// A native class: its constructors (overloads), or a container, or the base class alone.
struct NativeClass {
  std::string name;
  std::vector<std::unique_ptr<LayerConstructor>> constructors;
  ContainerKind container = ContainerKind::none;
  bool holds_parameters = false;  // ParameterList, ParameterDict
};

class NnModule final : public stage::InstanceObject {
 public:
  static constexpr stage::Type kType{"Module"};
  struct Entry {
    stage::Name name;
    stage::Value value;  // a tensor, a module, or None
    bool persistent = true;
  };
  using Entries = std::vector<Entry>;

  NnModule(HostState& state, std::shared_ptr<stage::ClassObject> class_object, const NativeClass* native);

  const stage::Type& type() const override { return kType; }
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  Status set_attribute(stage::Interpreter&, stage::Name name, stage::Value value, Span span) override;
  Result<stage::Value> call(stage::Interpreter&, stage::CallArgs args) override;
  Result<stage::Value> call_method(stage::Interpreter&, stage::Name name, stage::CallArgs args,
                                   Span name_span) override;
  Result<stage::Value> get_item(stage::Interpreter&, const stage::Value& index, Span span) override;
  Status set_item(stage::Interpreter&, const stage::Value& index, stage::Value value, Span span) override;
  Result<int64_t> length(stage::Interpreter&, Span span) override;
  Result<std::unique_ptr<stage::Iterator>> iterate(stage::Interpreter&, Span span) override;
  Result<bool> contains(stage::Interpreter&, const stage::Value& item, Span span) override;
  Result<bool> truth(stage::Interpreter&, Span span) override;
  Result<std::string> repr(stage::Interpreter&) override;
  void release() override;

  HostState& state() { return state_; }
  const NativeClass* native() const { return native_; }
  bool training();
  void set_training(bool training);

  Entries& parameters() { return parameters_; }
  Entries& buffers() { return buffers_; }
  Entries& modules() { return modules_; }
  // What a container holds: parameters or modules.
  Entries& items() { return native_ && native_->holds_parameters ? parameters_ : modules_; }
  void register_parameter(stage::Name name, stage::Value value) { put(parameters_, {name, std::move(value)}); }
  void register_buffer(stage::Name name, stage::Value value, bool persistent = true) {
    put(buffers_, {name, std::move(value), persistent});
  }
  // From a plain attribute that is a tensor.
  void register_as_buffer(stage::Name name);
  void register_module(stage::Name name, stage::Value value) { put(modules_, {name, std::move(value)}); }
  // For layers: a parameter of this shape (not initialised), or None.
  void add_parameter(std::string_view name, at::IntArrayRef shape, const Arguments& config, bool present = true);
  void add_buffer(std::string_view name, at::Tensor tensor);
  // The tensor of this name among parameters and buffers, or nullopt if it is None or absent.
  std::optional<at::Tensor> tensor(std::string_view name) const;
  at::Tensor weight(std::string_view name) const { return *tensor(name); }

  // Native layers: which constructor made it, and its arguments.
  const LayerConstructor* constructor = nullptr;
  torch::jit::Stack config;
  bool initialised = false;

  static const Entry* find(const Entries& entries, stage::Name name);

 private:
  static void put(Entries& entries, Entry entry);
  static void drop(Entries& entries, stage::Name name);
  Status set_tensor(stage::Name name, stage::Value value, Span span);

  HostState& state_;
  const NativeClass* native_;
  Entries parameters_, buffers_, modules_;
};

NnModule* as_module(const stage::Value& value);

// Finds the constructor of a native layer that takes the arguments, and gives the layer the attributes that tell them.
// Weights are not made. `no_matching_overload`.
Status configure_layer(NnModule& layer, stage::CallArgs& args);

// A module and the dotted path to it, "" for the root; parents first, each module once.
struct NamedModule {
  std::string path;
  stage::Value value;
  NnModule& module() const { return *as_module(value); }
};
std::vector<NamedModule> all_modules(const stage::Value& root);
// What attribute `name` ("cell.hidden") of a module below `root` holds becomes a buffer, if it is a tensor.
void register_as_buffer(const stage::Value& root, std::string_view name);

// What module.cpp and its neighbours put into class nn.Module and torch.nn.
using ModuleMethod = Result<stage::Value> (*)(stage::Interpreter&, NnModule&, stage::CallArgs&);
struct ModuleMethodRow {
  const char* name;
  ModuleMethod body;
};
std::span<const ModuleMethodRow> module_methods();
std::span<const ModuleMethodRow> sequence_methods();  // Sequential, ModuleList, ParameterList
std::span<const ModuleMethodRow> mapping_methods();   // ModuleDict, ParameterDict
Result<stage::Value> sequential_forward(stage::Interpreter& interpreter, NnModule& module, stage::CallArgs& args);
Result<stage::Value> get_sequence_item(stage::Interpreter&, NnModule& module, const stage::Value& index, Span span);

// A one-pass iterator over values, as Python's generators are (`next(model.parameters())`).
Result<stage::Value> make_iterator(stage::Interpreter& interpreter, std::vector<stage::Value> items, Span span);

}  // namespace tilepilot::eval
