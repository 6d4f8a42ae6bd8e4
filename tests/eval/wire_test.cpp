#include "eval/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

}  // namespace
}  // namespace tilepilot::eval
