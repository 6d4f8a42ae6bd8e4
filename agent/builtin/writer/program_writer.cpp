#include "agent/builtin/writer/program_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "agent/builtin/writer/equal_kernels.h"
#include "agent/builtin/writer/forward_writer.h"
#include "agent/builtin/writer/model_source.h"

namespace tilepilot::agent::builtin {

namespace {

struct Factory {
  std::string name;
  const KernelText* text;
};

class ProgramWriter {
 public:
  ProgramWriter(const eval::Reference& reference, const Plan& plan) : reference_(reference), plan_(plan) {}

  Result<std::string> run() {
    const bool keeps_forward = depends_on_mode(reference_) || has_input_numbers(reference_);
    kept_ = TRY(keep_source(reference_.model_source, reference_.model_path, keeps_forward));
    name_kernels();
    ForwardText forward = TRY(write_forward(reference_, plan_, handles_));
    leave_other_cases(forward);
    std::string body;
    for (auto& factory : factories_) body += factory_text(factory) + "\n\n";
    if (!kept_.helpers.empty()) body += kept_.helpers + "\n\n";
    body += model_text(forward);
    return imports(body) + "\n\n" + body;
  }

 private:
  // The graph is that of one mode, and of the numbers that were given; else the model's own operators run.
  void leave_other_cases(ForwardText& forward) const {
    std::vector<std::string> cases = forward.other_numbers;
    if (depends_on_mode(reference_)) cases.emplace_back(reference_.training ? "not self.training" : "self.training");
    if (cases.empty()) return;
    forward.lines.insert(forward.lines.begin() + 1, {fmt::format("    if {}:", fmt::join(cases, " or ")),
                                                     fmt::format("        return self.{}({})", kForwardAsWritten,
                                                                 fmt::join(forward.parameters, ", "))});
  }

  const eval::Reference& reference_;
  const Plan& plan_;
  KeptSource kept_;
  std::vector<Factory> factories_;
  std::vector<std::string> handles_;    // kernel -> "self.softmax"
  std::vector<std::string> creations_;  // lines of __init__

  std::set<std::string> made_;  // names of this file

  std::string unused_name(const std::string& wanted) {
    std::string base = kept_.words.count(wanted) ? wanted + "_kernel" : wanted, name = base;
    for (int i = 2; kept_.words.count(name) || !made_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

  // Kernels with one text share a factory; one text with the same sizes shares the kernel too.
  void name_kernels() {
    std::map<std::string, std::string> made;  // "softmax(4, 5)" -> handle
    for (auto& kernel : plan_.kernels) {
      const Factory& factory = factory_for(kernel);
      std::string creation = fmt::format("{}({})", factory.name, fmt::join(kernel.text.sizes, ", "));
      auto [found, fresh] = made.try_emplace(creation);
      if (fresh) {
        bool first = std::none_of(handles_.begin(), handles_.end(),
                                  [&](auto& handle) { return handle == "self." + factory.name; });
        found->second = "self." + (first ? factory.name : unused_name(factory.name));
        creations_.push_back(fmt::format("{} = {}", found->second, creation));
      }
      handles_.push_back(found->second);
    }
  }

  static bool is_same(const KernelText& one, const KernelText& other) {
    return one.parameters == other.parameters && one.new_results() == other.new_results() &&
           equal_but_for_names(one.body, other.body);
  }

  const Factory& factory_for(const PlannedKernel& kernel) {
    for (auto& factory : factories_)
      if (is_same(*factory.text, kernel.text)) return factory;
    factories_.push_back({unused_name(kernel.name), &kernel.text});
    return factories_.back();
  }

  // The kernel is called after its factory: reports name kernels, and a dozen of `main` tell nothing.
  static std::string named(std::string body, const std::string& factory) {
    const std::string_view definition = "def main(", result = "return main\n";
    const std::string name = factory + "_kernel";
    body.replace(body.find(definition), definition.size(), "def " + name + "(");
    return body.replace(body.rfind(result), result.size(), "return " + name + "\n");
  }

  static std::string factory_text(const Factory& factory) {
    std::vector<std::string> out;
    for (size_t i = factory.text->new_results(); i > 0; --i) out.push_back(fmt::format("-{}", i));
    std::string allocated = out.empty() ? "" : fmt::format("(out_idx=[{}])", fmt::join(out, ", "));
    return fmt::format("@tilelang.jit{}\ndef {}({}):\n{}", allocated, factory.name, factory.text->parameters,
                       named(factory.text->body, factory.name));
  }

  std::string model_text(const ForwardText& forward) const {
    std::string text = fmt::format("class ModelNew({}):\n", kept_.bases);
    if (!kept_.members.empty()) text += kept_.members + "\n";
    text += kept_.init;
    size_t line = kept_.init.rfind('\n', kept_.init.size() - 2) + 1;
    std::string indent = kept_.init.substr(line, kept_.init.find_first_not_of(' ', line) - line);
    if (indent.size() > 8) indent = "        ";
    for (auto& creation : creations_) text += indent + creation + "\n";
    text += "\n";
    for (auto& forward_line : forward.lines) text += "    " + forward_line + "\n";
    return text;
  }

  std::string imports(const std::string& body) const {
    std::vector<std::string> lines = kept_.imports;
    if (!lines.empty()) lines.push_back("");
    lines.push_back("import torch");
    lines.push_back("import torch.nn as nn");
    if (body.find("F.") != std::string::npos) lines.push_back("import torch.nn.functional as F");
    if (!plan_.kernels.empty()) {
      lines.push_back("import tilelang");
      lines.push_back("import tilelang.language as T");
    }
    return fmt::format("{}\n", fmt::join(lines, "\n"));
  }
};

}  // namespace

bool depends_on_mode(const eval::Reference& reference) {
  static const std::set<std::string> names = {"aten::batch_norm",
                                              "aten::native_batch_norm",
                                              "aten::_native_batch_norm_legit",
                                              "aten::dropout",
                                              "aten::native_dropout",
                                              "aten::feature_dropout",
                                              "aten::alpha_dropout",
                                              "aten::dropout_",
                                              "aten::alpha_dropout_",
                                              "aten::feature_dropout_",
                                              "aten::feature_alpha_dropout",
                                              "aten::cudnn_batch_norm",
                                              "aten::rrelu",
                                              "aten::rrelu_",
                                              "aten::rrelu_with_noise"};
  // Instance norm keeps no statistics, unless it is told to.
  auto tracks = [](const eval::GraphNode& node) {
    return node.op == "aten::instance_norm" && node.args.size() > 3 && node.args[3].value_id() != nullptr;
  };
  const auto& nodes = reference.forward.nodes;
  return reference.model_source.find(".training") != std::string::npos ||
         std::any_of(nodes.begin(), nodes.end(),
                     [&](const eval::GraphNode& node) { return names.count(node.op) > 0 || tracks(node); });
}

Result<std::string> write_program(const eval::Reference& reference, const Plan& plan) {
  return ProgramWriter(reference, plan).run();
}

}  // namespace tilepilot::agent::builtin
