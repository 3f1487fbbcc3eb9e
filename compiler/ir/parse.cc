// The text form of a graph: parsing. The grammar is in ir/text.h.
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "ir/graph.h"
#include "ir/text.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Constants with more elements are refused: a text is written by hand or by a printer that hashes
// large ones.
constexpr int64_t kMostParsed = int64_t{1} << 24;

// Characters of a text with the position for messages.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < token_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    throw Error("graph text, line " + std::to_string(line) + ", column " + std::to_string(column) +
                ": " + what);
  }

  bool at_end() {
    skip();
    return position_ == text_.size();
  }

  char peek() {
    skip();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "', found " + found());
  }

  bool accept_word(std::string_view word) {
    skip();
    if (text_.compare(position_, word.size(), word) != 0) return false;
    const size_t end = position_ + word.size();
    if (end < text_.size() && is_word_character(text_[end])) return false;
    position_ = end;
    return true;
  }

  void expect_word(std::string_view word) {
    if (!accept_word(word)) fail("expected " + std::string(word) + ", found " + found());
  }

  std::string word() {
    skip();
    const size_t begin = position_;
    while (position_ < text_.size() && is_word_character(text_[position_])) ++position_;
    if (begin == position_) fail("expected a word, found " + found());
    return text_.substr(begin, position_ - begin);
  }

  std::string quoted() {
    expect('"');
    std::string result;
    while (position_ < text_.size() && text_[position_] != '"') result += quoted_character();
    if (position_ == text_.size()) fail("expected the end of a quoted text, found none");
    ++position_;
    return result;
  }

  // "%name" or "%"name"".
  std::string reference() {
    expect('%');
    if (position_ < text_.size() && text_[position_] == '"') return quoted();
    const size_t begin = position_;
    while (position_ < text_.size() && text::is_name_character(text_[position_])) ++position_;
    if (begin == position_) fail("expected a name, found " + found());
    return text_.substr(begin, position_ - begin);
  }

  // The characters of a number, infinity or NaN.
  std::string number() {
    skip();
    const size_t begin = position_;
    if (position_ < text_.size() && text_[position_] == '-') ++position_;
    while (position_ < text_.size() &&
           (is_word_character(text_[position_]) || text_[position_] == '.' || is_exponent_sign())) {
      ++position_;
    }
    if (begin == position_) fail("expected a number, found " + found());
    return text_.substr(begin, position_ - begin);
  }

 private:
  static bool is_word_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  bool is_exponent_sign() const {
    const char c = text_[position_];
    const char before = position_ > 0 ? text_[position_ - 1] : '\0';
    return (c == '-' || c == '+') &&
           (before == 'e' || before == 'E' || before == 'p' || before == 'P');
  }

  char quoted_character() {
    const char c = text_[position_++];
    if (c != '\\') return c;
    if (position_ == text_.size()) fail("expected a character after \\, found none");
    const char escaped = text_[position_++];
    if (escaped != 'x') return escaped;
    const std::string digits = text_.substr(position_, 2);
    char* end = nullptr;
    const long code = std::strtol(digits.c_str(), &end, 16);
    if (digits.size() != 2 || *end != '\0') fail("expected two hexadecimal digits after \\x");
    position_ += 2;
    return static_cast<char>(code);
  }

  std::string found() const {
    if (position_ >= text_.size()) return "the end";
    return '"' + text_.substr(position_, text_.find('\n', position_) - position_).substr(0, 20) +
           '"';
  }

  // Skips blanks and comments; what follows is the token that `fail` points at.
  void skip() {
    while (position_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[position_])) != 0) {
        ++position_;
      } else if (text_.compare(position_, 2, "//") == 0) {
        const size_t end = text_.find('\n', position_);
        position_ = end == std::string::npos ? text_.size() : end;
      } else {
        break;
      }
    }
    token_ = position_;
  }

  const std::string& text_;
  size_t position_ = 0;
  size_t token_ = 0;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : scanner_(text) {}

  Graph parse() {
    if (scanner_.accept_word("graph")) header();
    while (!scanner_.at_end()) line();
    return std::move(graph_);
  }

 private:
  struct Result {
    std::string name;
    bool typed = false;
    TensorType type;
  };

  void header() {
    graph_.name = scanner_.quoted();
    if (scanner_.accept_word("rows")) graph_.micro_batch_rows = integer();
    if (scanner_.accept_word("micro_batches")) graph_.micro_batches = integer();
    if (scanner_.accept_word("replicas")) graph_.replicas = integer();
  }

  void line() {
    if (scanner_.peek() == '%') return node();
    const std::string word = scanner_.word();
    if (word == "feed") return feed();
    if (word == "state") return state();
    if (word == "constant") return constant();
    if (word == "control") return control();
    if (word == "output") return output();
    if (word == "update") return update();
    scanner_.fail("expected a leaf, node, output or update, found \"" + word + '"');
  }

  void feed() {
    const std::string name = new_name();
    graph_.add_feed(name, type());
  }

  void state() {
    const StateRole state_role = role();
    const std::string name = new_name();
    TensorType state_type = type();
    TensorType whole = state_type;
    Shape shape;
    if (scanner_.accept_word("of")) shape = whole.shape = integers();
    scanner_.expect('=');
    Initializer initializer = initial(whole);
    graph_.add_state(name, std::move(state_type), state_role, std::move(initializer),
                     std::move(shape));
  }

  void constant() {
    const std::string name = new_name();
    const TensorType constant_type = type();
    scanner_.expect('=');
    graph_.add_constant(elements(constant_type), name);
  }

  void control() {
    const std::string name = new_name();
    if (name != "learning_rate" && name != "seed" && name != "step") {
      scanner_.fail("expected learning_rate, seed or step as control, found " + name);
    }
    const TensorType found = type();
    const TensorType& expected = graph_.type(graph_.control(name));
    check_type(name, expected, found);
  }

  void output() {
    const std::string name = scanner_.quoted();
    graph_.outputs.push_back({name, value()});
  }

  void update() {
    const ValueId target = value();
    scanner_.expect('=');
    graph_.updates.push_back({target, value()});
  }

  void node() {
    std::vector<Result> results;
    do {
      Result result{new_name(), scanner_.peek() == ':', {}};
      if (result.typed) result.type = type();
      results.push_back(std::move(result));
    } while (scanner_.accept(','));
    scanner_.expect('=');
    const Op op = operation();
    const std::vector<ValueId> values = operands();
    const Attributes named = attributes();
    graph_.context() = {phase(), id(), sources()};
    check(results, append(op, values, named, results));
    graph_.context() = {};
  }

  std::vector<ValueId> append(Op op, const std::vector<ValueId>& values, const Attributes& named,
                              const std::vector<Result>& results) {
    std::vector<std::string> names;
    for (const Result& result : results) names.push_back(result.name);
    if (static_cast<int>(names.size()) != info(op).results) {
      scanner_.fail("expected " + std::to_string(info(op).results) + " results of " +
                    std::string(name_of(op)) + ", found " + std::to_string(names.size()));
    }
    try {
      return graph_.add_named_node(op, values, named, names);
    } catch (const Error& error) {
      scanner_.fail(error.what());
    }
  }

  void check(const std::vector<Result>& results, const std::vector<ValueId>& ids) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].typed) check_type(results[i].name, graph_.type(ids[i]), results[i].type);
    }
  }

  void check_type(const std::string& name, const TensorType& expected, const TensorType& found) {
    if (expected == found) return;
    scanner_.fail('%' + name + ": expected " + std::string(name_of(expected.dtype)) +
                  to_string(expected.shape) + ", found " + std::string(name_of(found.dtype)) +
                  to_string(found.shape));
  }

  std::string new_name() {
    std::string name = scanner_.reference();
    if (graph_.find(name) != kNone) scanner_.fail("a second value is called %" + name);
    return name;
  }

  ValueId value() {
    const std::string name = scanner_.reference();
    const ValueId id = graph_.find(name);
    if (id == kNone) scanner_.fail("there is no value called %" + name + " before");
    return id;
  }

  StateRole role() {
    const std::string word = scanner_.word();
    for (int i = 0; i <= static_cast<int>(StateRole::kAccumulator); ++i) {
      if (word == name_of(static_cast<StateRole>(i))) return static_cast<StateRole>(i);
    }
    scanner_.fail("expected the role of a state, found \"" + word + '"');
  }

  Op operation() {
    const std::string word = scanner_.word();
    const std::optional<Op> op = op_from_name(word);
    if (!op) scanner_.fail("there is no operator called " + word);
    return *op;
  }

  std::vector<ValueId> operands() {
    std::vector<ValueId> values;
    scanner_.expect('(');
    while (!scanner_.accept(')')) {
      if (!values.empty()) scanner_.expect(',');
      values.push_back(value());
    }
    return values;
  }

  Attributes attributes() {
    Attributes named;
    if (!scanner_.accept('{')) return named;
    while (!scanner_.accept('}')) {
      if (!named.map().empty()) scanner_.expect(',');
      const std::string name = scanner_.word();
      scanner_.expect('=');
      named.set(name, attribute());
    }
    return named;
  }

  Attribute attribute() {
    if (scanner_.peek() == '"') return scanner_.quoted();
    if (scanner_.peek() == '[') return integers();
    const std::string text = scanner_.number();
    const bool is_real = text.find_first_of(".eEpni") != std::string::npos;
    if (is_real) return to_real(text);
    return to_integer(text);
  }

  Phase phase() {
    if (!scanner_.accept('@')) return Phase::kForward;
    const std::string word = scanner_.word();
    for (int i = 0; i <= static_cast<int>(Phase::kUpdate); ++i) {
      if (word == name_of(static_cast<Phase>(i))) return static_cast<Phase>(i);
    }
    scanner_.fail("expected a phase, found \"" + word + '"');
  }

  int64_t id() { return scanner_.accept('#') ? integer() : 0; }

  Sources sources() {
    std::vector<std::string> names;
    while (scanner_.peek() == '"') names.push_back(scanner_.quoted());
    return names;
  }

  // ": f32[2,3]"
  TensorType type() {
    scanner_.expect(':');
    const std::string word = scanner_.word();
    const std::optional<DType> dtype = dtype_from_name(word);
    if (!dtype) scanner_.fail("expected a dtype, found \"" + word + '"');
    const Shape shape = integers();
    for (const int64_t size : shape) {
      if (size < 0)
        scanner_.fail("expected sizes that are not negative, found " + to_string(shape));
    }
    return {*dtype, shape};
  }

  Initializer initial(const TensorType& state_type) {
    Initializer initializer;
    const std::string word = scanner_.word();
    if (word == "zero") return initializer;
    if (word == "literal") {
      initializer.kind = Initializer::Kind::kLiteral;
      initializer.literal = elements(state_type);
      return initializer;
    }
    scanner_.expect('(');
    initializer.a = to_real(scanner_.number());
    if (word == "fill") {
      initializer.kind = Initializer::Kind::kFill;
    } else if (word == "normal" || word == "uniform") {
      initializer.kind =
          word == "normal" ? Initializer::Kind::kRandomNormal : Initializer::Kind::kRandomUniform;
      scanner_.expect(',');
      initializer.b = to_real(scanner_.number());
      scanner_.expect(',');
      scanner_.expect_word("seed");
      initializer.seed = integer();
    } else {
      scanner_.fail("expected initial values, found \"" + word + '"');
    }
    scanner_.expect(')');
    return initializer;
  }

  LiteralPtr elements(const TensorType& literal_type) {
    const int64_t count = element_count(literal_type.shape);
    if (count > kMostParsed) scanner_.fail("a constant of " + std::to_string(count) + " elements");
    auto literal = std::make_shared<Literal>(literal_type.dtype, literal_type.shape);
    if (scanner_.accept_word("fill")) {
      scanner_.expect('(');
      const std::string text = scanner_.number();
      for (int64_t i = 0; i < count; ++i) set(*literal, i, text);
      scanner_.expect(')');
      return literal;
    }
    if (scanner_.accept_word("sha256")) scanner_.fail("a constant given by its hash has no values");
    scanner_.expect('[');
    for (int64_t i = 0; i < count; ++i) {
      if (i != 0) scanner_.expect(',');
      set(*literal, i, scanner_.number());
    }
    scanner_.expect(']');
    return literal;
  }

  void set(Literal& literal, int64_t i, const std::string& text) {
    if (is_float(literal.dtype())) return literal.set_double(i, to_real(text));
    if (literal.dtype() == DType::kUInt64) {
      char* end = nullptr;
      const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
      if (*end != '\0') scanner_.fail("expected an integer, found " + text);
      return literal.set_int(i, static_cast<int64_t>(value));
    }
    const int64_t value = to_integer(text);
    literal.set_int(i, value);
    if (literal.as_int(i) != value) {
      scanner_.fail("expected a value of type " + std::string(name_of(literal.dtype())) +
                    ", found " + text);
    }
  }

  double to_real(const std::string& text) {
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "-nan") return -std::numeric_limits<double>::quiet_NaN();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0') scanner_.fail("expected a number, found " + text);
    return value;
  }

  int64_t to_integer(const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (*end != '\0' || errno != 0) scanner_.fail("expected an integer, found " + text);
    return value;
  }

  int64_t integer() { return to_integer(scanner_.number()); }

  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    scanner_.expect('[');
    while (!scanner_.accept(']')) {
      if (!list.empty()) scanner_.expect(',');
      list.push_back(integer());
    }
    return list;
  }

  Scanner scanner_;
  Graph graph_;
};

}  // namespace

Graph parse_graph(const std::string& text) { return Parser(text).parse(); }

}  // namespace sgtc
