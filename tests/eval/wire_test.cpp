#include "eval/process/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

namespace tilepilot::eval {
namespace {

struct Pair {
  Pair() : Pair(socket_pair()) {}
  explicit Pair(std::pair<Descriptor, Descriptor> ends) : left(std::move(ends.first)), right(std::move(ends.second)) {}
  Wire left, right;
};

TEST(Wire, CarriesMessagesInOrder) {
  Pair pair;
  EXPECT_TRUE(pair.left.send({{"n", 1}}));
  EXPECT_TRUE(pair.left.send({{"n", 2}}));
  EXPECT_EQ(pair.right.receive(1)->body.at("n"), 1);
  EXPECT_EQ(pair.right.receive(1)->body.at("n"), 2);
}

TEST(Wire, CarriesLargeMessages) {
  Pair pair;
  std::string text(5'000'000, 'x');
  std::thread sender([&] { pair.left.send({{"text", text}}); });
  auto message = pair.right.receive(10);
  sender.join();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body.at("text").get<std::string>().size(), text.size());
}

TEST(Wire, CarriesDescriptors) {
  Pair pair;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Descriptor reader(ends[0]), writer(ends[1]);
  pair.left.send({{"op", "take"}}, {writer.number(), writer.number()});
  auto message = pair.right.receive(1);
  ASSERT_EQ(message->descriptors.size(), 2u);
  EXPECT_EQ(write(message->descriptors[1].number(), "!", 1), 1);
  char got = 0;
  EXPECT_EQ(read(reader.number(), &got, 1), 1);
  EXPECT_EQ(got, '!');
}

TEST(Wire, BytesThatAreNotUtf8DoNotStopIt) {
  Pair pair;
  EXPECT_TRUE(pair.left.send({{"text", "\xff\xfe"}}));
  EXPECT_TRUE(pair.right.receive(1));
}

TEST(Wire, fail_TimesOut) {
  Pair pair;
  EXPECT_FALSE(pair.right.receive(0.02));
  EXPECT_EQ(pair.right.trouble(), Wire::Trouble::timed_out);
}

TEST(Wire, fail_OtherSideGone) {
  auto ends = socket_pair();
  Wire wire(std::move(ends.first));
  { Descriptor closed = std::move(ends.second); }
  EXPECT_FALSE(wire.receive(1));
  EXPECT_EQ(wire.trouble(), Wire::Trouble::closed);
  EXPECT_FALSE(wire.send({{"op", "x"}}));
}

void send_raw(const Descriptor& socket, const std::string& body, uint64_t size) {
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += body;
  ASSERT_EQ(send(socket.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
}

TEST(Wire, fail_NotJson) {
  auto ends = socket_pair();
  Wire wire(std::move(ends.first));
  send_raw(ends.second, "hello", 5);
  EXPECT_FALSE(wire.receive(1));
  EXPECT_EQ(wire.trouble(), Wire::Trouble::malformed);
}

TEST(Wire, fail_AbsurdLength) {
  auto ends = socket_pair();
  Wire wire(std::move(ends.first));
  send_raw(ends.second, "", ~uint64_t{0});
  EXPECT_FALSE(wire.receive(1));
  EXPECT_EQ(wire.trouble(), Wire::Trouble::malformed);
}

TEST(Wire, fail_LengthThatNeverComes) {
  auto ends = socket_pair();
  Wire wire(std::move(ends.first));
  wire.limit_body(100);
  send_raw(ends.second, "", 101);
  EXPECT_FALSE(wire.receive(1));
  EXPECT_EQ(wire.trouble(), Wire::Trouble::malformed);
}

TEST(Wire, fail_NestingThatWouldOverflowStacks) {
  for (const auto& [depth, is_read] : {std::pair(50, true), std::pair(50'000, false)}) {
    auto ends = socket_pair();
    Wire wire(std::move(ends.first));
    std::string body = "{\"a[[[[\": " + std::string(static_cast<size_t>(depth), '[');
    body += std::string(static_cast<size_t>(depth), ']') + "}";
    send_raw(ends.second, body, body.size());
    EXPECT_EQ(wire.receive(1).has_value(), is_read) << depth;
  }
}

TEST(Wire, HoldsFewOfManyDescriptors) {
  Pair pair;
  for (int i = 0; i < 3; ++i) {
    pair.left.send({{"op", "take"}}, std::vector<int>(8, 0));
    auto message = pair.right.receive(1);
    ASSERT_TRUE(message);
    EXPECT_LE(message->descriptors.size(), 8u);
  }
}

// The other side reads nothing, and the socket's buffer is full.
TEST(Wire, fail_SendingToOneThatDoesNotRead) {
  Pair pair;
  const double begin = monotonic_seconds();
  EXPECT_FALSE(pair.left.send({{"text", std::string(5'000'000, 'x')}}, {}, 0.05));
  EXPECT_LT(monotonic_seconds() - begin, 5);
}

// Whatever bytes come, there is a message or there is trouble.
TEST(Wire, SurvivesRandomBytes) {
  std::mt19937 random(7);
  const std::string words[] = {"{", "}", "[", "]", "\"", "\\", ":", ",", "1e999", "-", "null", "\"a\"", "\xff", "0"};
  for (int round = 0; round < 500; ++round) {
    auto ends = socket_pair();
    Wire wire(std::move(ends.first));
    std::string body = round % 2 ? "{" : "";
    for (unsigned n = random() % 20; n > 0; --n) body += words[random() % std::size(words)];
    send_raw(ends.second, body, random() % 3 == 0 ? random() % 40 : body.size());
    { Descriptor closed = std::move(ends.second); }
    const bool arrived = wire.receive(1).has_value();
    EXPECT_TRUE(arrived || wire.trouble() != Wire::Trouble::timed_out);
  }
}

}  // namespace
}  // namespace tilepilot::eval
