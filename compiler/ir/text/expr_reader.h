// Reads expressions and regions of the text form from tokens, and knows the names in scope. Statements and programs:
// read.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/text/lexer.h"
#include "compiler/ir/text/spelling.h"

namespace tilepilot::ir {

class ExprReader {
 public:
  explicit ExprReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take();
  bool accept(std::string_view what);
  Status expect(std::string_view what);
  Error wrong(std::string_view expected) const;  // "expected ..., found ..."
  Span since(size_t first) const;                // from token `first` to the last taken
  size_t position() const { return at_; }

  // Guards recursion: every construct that can hold itself enters.
  class Nesting {
   public:
    explicit Nesting(int& depth) : depth_(++depth) {}
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    bool too_deep() const { return depth_ > 200; }

   private:
    int& depth_;
  };
  int depth_ = 0;
  Error too_deep() const;

  using Named = std::variant<Var, Buffer>;
  void enter() { scopes_.emplace_back(); }
  void leave() { scopes_.pop_back(); }
  Status declare(const Token& name, Named what);
  Result<Token> new_name();
  Result<Buffer> buffer();
  Result<DType> dtype();
  Result<int64_t> integer();  // with its sign

  // Variables that are in scope only once what follows them has been read.
  struct NewVars {
    std::vector<Token> names;
    std::vector<Var> vars;
  };
  Result<NewVars> new_vars();  // `i, j: int64 in`
  Status declare_all(const NewVars& fresh);

  Result<Expr> expr(std::optional<DType> place = std::nullopt);
  // `a, b, c`, possibly none before `closing`.
  Result<std::vector<Expr>> exprs_until(std::string_view closing);
  Result<std::vector<Expr>> exprs();
  Result<Region> region();

 private:
  // An operand, and whether it is a literal without a suffix: such a one takes the type of its surroundings.
  struct Operand {
    Expr expr;
    bool bare = false;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::vector<std::unordered_map<std::string, Named>> scopes_{1};

  const Named* find(std::string_view name) const;
  static Expr settle(const Operand& operand, std::optional<DType> place);
  static void unify(Operand& left, Operand& right);

  Result<Operand> operand(Precedence least);
  Result<Operand> prefix();
  Result<Operand> primary();
  Result<Operand> number(bool negative);
  Result<Operand> word();
  Result<Operand> named(const Token& name);
  std::optional<Operand> special(const Token& name, bool negative) const;
  Result<Expr> call(const Token& name);
  Result<Expr> pair_call(BinaryOp op);
  Result<Expr> select_call();
  std::optional<BinaryOp> infix() const;
  Result<Region> whole(const Buffer& buffer, Span span);
  Status axis(Region& region);
};

}  // namespace tilepilot::ir
