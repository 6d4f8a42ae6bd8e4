// What a language model hears before its first attempt of where eager spends its time.
#include "agent/llm/op_graph_text.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/eager_times.h"
#include "agent/llm/prompt.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// x -> relu -> sin -> relu -> ...
eval::Reference reference(int nodes = 3) {
  eval::Reference reference;
  reference.model_source = "class Model: pass\n";
  for (int i = 0; i <= nodes; ++i) {
    eval::GraphValue value;
    value.name = "v" + std::to_string(i);
    value.kind = i == 0 ? eval::GraphValue::Kind::input : eval::GraphValue::Kind::node;
    value.dtype = "float32";
    value.shape = {1024};
    value.strides = {1};
    reference.forward.values.push_back(value);
  }
  reference.forward.inputs = {0};
  for (int i = 0; i < nodes; ++i) {
    eval::GraphNode node;
    node.op = i % 2 == 1 ? "aten::sin" : "aten::relu";
    node.args = {eval::GraphArgument{eval::ValueRef{i}}};
    node.outputs = {i + 1};
    reference.forward.nodes.push_back(node);
  }
  reference.forward.outputs = eval::GraphArgument{eval::ValueRef{nodes}};
  return reference;
}

eval::MachineRates rates() {
  eval::MachineRates rates;
  rates.name = "a processor";
  rates.bytes_per_s = 10e9;
  rates.product_flops = rates.other_flops = rates.vector_flops = 100e9;
  return rates;
}

eval::EagerTimes times() { return {{100, 95, 105, 9}, {10, 75, 12}}; }

TEST(OpGraphText, TellsWhatEagerWasMeasuredToSpend) {
  const eval::Reference model = reference();
  const auto preflight = eval::preflight(model, rates(), false);
  const OpGraphText text = describe_graph(model, preflight, times());
  ASSERT_EQ(text.rows.size(), 3u);
  EXPECT_THAT(text.rows[1], AllOf(HasSubstr("sin(v1)"),
                                  HasSubstr(", measured 75.0 us: PyTorch is far from the machine's rates here\n")));
  EXPECT_THAT(text.totals, HasSubstr("a call of eager takes 100.0 us: 77 % in `sin`, 23 % in `relu` (2 times).\n"));
  const std::string task = join(task_prompt({model, "cpu", "hybrid", preflight, 0, {}, "", {}, times()}));
  EXPECT_THAT(task, AllOf(HasSubstr("when it was measured here:"), HasSubstr("measured 12.0 us")));
}

// A recurrence that is written out is told line by line of the model.
TEST(OpGraphText, SumsUpALongGraphByLine) {
  eval::Reference model = reference(400);
  for (size_t i = 0; i < model.forward.nodes.size(); ++i)
    model.forward.nodes[i].line = i < 3 ? 5 : 7 + static_cast<int>(i % 2);
  eval::EagerTimes eager{{400, 390, 410, 9}, std::vector<double>(400, 1.0)};
  const OpGraphText text = describe_graph(model, eval::preflight(model, rates(), false), eager);
  ASSERT_EQ(text.rows.size(), 3u);
  EXPECT_THAT(text.rows[0], HasSubstr("line 5: 3 operators, `relu`, `sin`: "));
  EXPECT_THAT(text.rows[1], AllOf(HasSubstr("line 8: 199 operators, `sin`: "), HasSubstr(", measured 199.0 us")));
  EXPECT_THAT(text.rows[2], HasSubstr("line 7: 198 operators, `relu`: "));
}

TEST(OpGraphText, TellsThatTheMachineWasBusy) {
  const eval::Reference model = reference();
  eval::EagerTimes busy = times();
  busy.waited = 0.5;
  EXPECT_THAT(describe_graph(model, eval::preflight(model, rates(), false), busy).totals,
              HasSubstr("Measured here (while others were at work), a call"));
}

TEST(Prompt, TellsWhatBecomesOfBuffers) {
  eval::Reference model = reference();
  model.training = true;
  const auto preflight = eval::preflight(model, rates(), false);
  const auto task = [&] { return join(task_prompt({model, "cpu", "hybrid", preflight, 0, {}, ""})); };
  EXPECT_THAT(task(), AllOf(Not(HasSubstr("training mode")), Not(HasSubstr("buffers"))));
  eval::GraphValue buffer = model.forward.values[0];
  buffer.kind = eval::GraphValue::Kind::buffer;
  model.forward.values.push_back(buffer);
  model.parameters.push_back({.name = "table", .value = 4, .tensor = "table", .is_buffer = true});
  EXPECT_THAT(task(), AllOf(HasSubstr("other values of their kind, too: read `table`"), Not(HasSubstr("changes `"))));
  eval::GraphNode node;
  node.op = "aten::add_";
  node.args = {eval::GraphArgument{eval::ValueRef{4}}, eval::GraphArgument{eval::ValueRef{0}}};
  model.forward.nodes.push_back(node);
  EXPECT_THAT(task(), HasSubstr("`forward` changes `table`: yours must leave the same there."));
}

TEST(OpGraphText, SaysNothingOfWhatWasNotMeasured) {
  const eval::Reference model = reference();
  const auto preflight = eval::preflight(model, rates(), false);
  EXPECT_THAT(join(task_prompt({model, "cpu", "hybrid", preflight, 0, {}, ""})), Not(HasSubstr("measured")));
  // Times of another graph.
  const OpGraphText text = describe_graph(model, preflight, eval::EagerTimes{{100, 95, 105, 9}, {10, 75}});
  EXPECT_THAT(text.totals + text.rows[0], Not(HasSubstr("easured")));
}

class EagerTimesOfAModel : public ::testing::Test {
 protected:
  EagerTimesOfAModel() : folder_(fs::temp_directory_path() / ("tilepilot-eager-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~EagerTimesOfAModel() override { fs::remove_all(folder_); }

  std::optional<eval::EagerTimes> ask(const eval::Reference& model, Result<eval::EagerTimes> answer) {
    eval::JudgeOptions judge;
    judge.cache = folder_;
    return eager_times(
        {model, preflight_, "cpu", judge},
        [&] {
          ++measured_;
          return std::move(answer);
        },
        [&](const std::string& line) { said_ = line; });
  }
  const fs::path folder_;
  eval::Preflight preflight_;
  int measured_ = 0;
  std::string said_;
};

TEST_F(EagerTimesOfAModel, AreMeasuredOnce) {
  const eval::Reference model = reference();
  ASSERT_TRUE(ask(model, times()));
  auto kept = ask(model, eval::EagerTimes{{1, 1, 1, 1}, {1, 1, 1}});
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->node_us, times().node_us);
  EXPECT_EQ(measured_, 1);
  eval::Reference other = reference();
  other.model_source = "class Model: other\n";
  ask(other, times());
  EXPECT_EQ(measured_, 2);
}

TEST_F(EagerTimesOfAModel, MayBeUnknown) {
  const eval::Reference model = reference();
  EXPECT_FALSE(ask(model, make_error(DiagnosticKind::worker_unavailable, {}, "a call of it takes 9.0 s")));
  EXPECT_THAT(said_, HasSubstr("takes 9.0 s"));
  EXPECT_FALSE(ask(model, eval::EagerTimes{{100, 95, 105, 9}, {10}}));
  EXPECT_THAT(said_, HasSubstr("not about this model"));
  preflight_.eager_s = 30;
  EXPECT_FALSE(ask(model, times()));
  EXPECT_THAT(said_, HasSubstr("about 30.0 s"));
  EXPECT_EQ(measured_, 2);
}

// Those of a busy machine are measured anew in another session.
TEST_F(EagerTimesOfAModel, OfABusyMachineDoNotLast) {
  const eval::Reference model = reference();
  eval::EagerTimes busy = times();
  busy.waited = 0.5;
  ASSERT_TRUE(ask(model, busy));
  EXPECT_EQ(ask(model, times())->waited, 0.5);
  EXPECT_EQ(measured_, 1);
  for (const auto& entry : fs::recursive_directory_iterator(folder_))
    if (entry.is_regular_file())
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(ask(model, times())->waited, 0);
  EXPECT_EQ(measured_, 2);
}

// A file that is damaged is measured anew.
TEST_F(EagerTimesOfAModel, SurviveADamagedFile) {
  const eval::Reference model = reference();
  ASSERT_TRUE(ask(model, times()));
  for (const auto& entry : fs::recursive_directory_iterator(folder_))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "{\"call\": 3";
  EXPECT_TRUE(ask(model, times()));
  EXPECT_EQ(measured_, 2);
}

TEST(EagerTimes, ComeBackFromJson) {
  const auto node = to_json(times());
  EXPECT_EQ(to_json(eval::eager_times_from_json(nlohmann::json::parse(node.dump()))), node);
}

}  // namespace
}  // namespace tilepilot::agent
