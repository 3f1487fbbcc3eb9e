#include "options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "failure.h"

namespace sgtc::runtime {
namespace {

// One option. `apply` stores the value (empty for a flag) and returns what was expected instead if
// it cannot be read, else an empty text.
struct OptionSpec {
  std::string_view name;
  std::string_view value;  // placeholder in --help; empty: a flag
  std::string_view help;
  std::string (*apply)(Options& options, const std::string& value);
};

struct OptionGroup {
  std::string_view title;
  std::vector<OptionSpec> options;
};

bool parse_integer(const std::string& text, int64_t& result) {
  errno = 0;
  char* end = nullptr;
  result = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0' && errno == 0 && !std::isspace(text[0]);
}

template <int64_t Options::* kMember, int64_t kLeast>
std::string set_integer(Options& options, const std::string& text) {
  if (parse_integer(text, options.*kMember) && options.*kMember >= kLeast) return {};
  return "an integer of at least " + std::to_string(kLeast);
}

template <bool Options::* kMember>
std::string set_flag(Options& options, const std::string&) {
  options.*kMember = true;
  return {};
}

template <std::string Options::* kMember>
std::string set_path(Options& options, const std::string& text) {
  options.*kMember = text;
  return text.empty() ? "a path" : "";
}

// Splits NAME[,NAME]=FILE.
bool parse_named_file(const std::string& text, NamedFile& result) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size()) return false;
  result.path = text.substr(equals + 1);
  for (size_t begin = 0; begin <= equals;) {
    const size_t end = std::min(text.find(',', begin), equals);
    if (end == begin) return false;
    result.names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return true;
}

template <std::vector<NamedFile> Options::* kMember>
std::string add_file(Options& options, const std::string& text) {
  NamedFile file;
  if (!parse_named_file(text, file) || file.names.size() != 1) return "NAME=FILE";
  (options.*kMember).push_back(file);
  return {};
}

// Like add_file; two names make a token stream.
template <std::vector<NamedFile> Options::* kMember, size_t kLeastNames>
std::string add_tokens(Options& options, const std::string& text) {
  NamedFile file;
  if (!parse_named_file(text, file) || file.names.size() < kLeastNames || file.names.size() > 2) {
    return kLeastNames == 2 ? "X,Y=FILE" : "NAME=FILE or X,Y=FILE";
  }
  (options.*kMember).push_back(file);
  return {};
}

std::string one_of(std::string& member, const std::string& text,
                   std::initializer_list<std::string_view> choices) {
  std::string expected;
  for (std::string_view choice : choices) {
    if (choice == text) {
      member = text;
      return {};
    }
    expected += (expected.empty() ? "" : " or ") + std::string(choice);
  }
  return expected;
}

std::string set_last_batch(Options& options, const std::string& text) {
  return one_of(options.last_batch, text, {"drop", "pad"});
}

std::string set_warmup(Options& options, const std::string& text) {
  options.rate_option = "--warmup";
  return set_integer<&Options::warmup, 0>(options, text);
}

std::string set_decay(Options& options, const std::string& text) {
  options.rate_option = "--decay";
  return one_of(options.decay, text, {"none", "linear", "cosine"});
}

std::string set_on_nan(Options& options, const std::string& text) {
  return one_of(options.on_nan, text, {"skip", "stop"});
}

std::string set_learning_rate(Options& options, const std::string& text) {
  options.rate_option = "--lr";
  errno = 0;
  char* end = nullptr;
  options.learning_rate = std::strtod(text.c_str(), &end);
  const bool read = !text.empty() && *end == '\0' && std::isfinite(options.learning_rate);
  return read && options.learning_rate >= 0 ? "" : "a number of at least 0";
}

std::string set_seed(Options& options, const std::string& text) {
  options.seed_given = true;
  return parse_integer(text, options.seed) ? "" : "an integer";
}

std::string set_calibrate(Options& options, const std::string& text) {
  options.dry_run = true;
  return set_path<&Options::calibrate>(options, text);
}

std::string add_dimension(Options& options, const std::string& text) {
  const size_t equals = text.find('=');
  int64_t size = 0;
  if (equals == text.npos || equals == 0 || !parse_integer(text.substr(equals + 1), size)) {
    return "NAME=SIZE";
  }
  options.dims[text.substr(0, equals)] = size;
  return {};
}

const std::vector<OptionGroup>& option_table() {
  static const std::vector<OptionGroup> table = {
      {"Data",
       {{"data", "NAME=FILE.npy",
         "samples of one graph input, along the first dimension; repeat it for each input",
         add_file<&Options::data>},
        {"tokens", "X,Y=FILE.bin",
         "token stream (uint16, raw or with llm.c's header): X gets windows, Y the same shifted by "
         "one",
         add_tokens<&Options::tokens, 2>},
        {"shuffle", "", "another seeded order of the samples in each epoch (default: in order)",
         set_flag<&Options::shuffle>},
        {"last-batch", "drop|pad",
         "what becomes of rows at the end of an epoch that are less than a step; pad needs a "
         "program "
         "of sgtc --last-batch=pad (default: what the program was compiled for)",
         set_last_batch}}},
      {"Training",
       {{"steps", "N", "total number of steps, also after a resume",
         set_integer<&Options::steps, 0>},
        {"lr", "X", "learning rate (default: 0.001)", set_learning_rate},
        {"warmup", "N", "the first N steps use lr*step/N (default: 0)", set_warmup},
        {"decay", "none|linear|cosine",
         "after the warm-up, with f = (step-1-warmup)/(steps-warmup): lr, lr*(1-f) or "
         "lr*(1+cos(pi*f))/2 (default: none)",
         set_decay},
        {"seed", "N", "seed of initial values, shuffling and dropout (default: 0)", set_seed},
        {"on-nan", "skip|stop",
         "a step with a gradient that is not finite changes nothing (default) or ends the run",
         set_on_nan},
        {"init", "FILE.safetensors", "initial values of the parameters",
         set_path<&Options::init>}}},
      {"Evaluation",
       {{"eval", "NAME=FILE.npy", "evaluation data, as for --data; X,Y=FILE.bin as for --tokens",
         add_tokens<&Options::eval, 1>},
        {"eval-every", "N", "evaluate after every N steps (default: at the end)",
         set_integer<&Options::eval_every, 1>},
        {"predict", "OUTPUT=FILE.npy",
         "write a graph output for all rows of the evaluation data, else of the training data",
         add_file<&Options::predict>}}},
      {"Checkpoints",
       {{"checkpoint", "DIR", "folder for checkpoints; one is written at the end",
         set_path<&Options::checkpoint>},
        {"save-every", "N", "write a checkpoint after every N steps",
         set_integer<&Options::save_every, 1>},
        {"keep", "N", "checkpoints that are kept (default: 2)", set_integer<&Options::keep, 1>},
        {"resume", "auto|DIR",
         "go on from the newest checkpoint of --checkpoint (if there is one) or of DIR",
         set_path<&Options::resume>},
        {"save", "FILE.safetensors", "write the final weights", set_path<&Options::save>}}},
      {"Reports",
       {{"log", "FILE.jsonl", "one JSON object per step", set_path<&Options::log>},
        {"trace", "FILE.json",
         "times of the tasks of the last steps, on a GPU of its kernels, for chrome://tracing; and "
         "how much of the communication runs beside them",
         set_path<&Options::trace>},
        {"quiet", "", "print no step lines", set_flag<&Options::quiet>}}},
      {"Several processes (default: what srun, mpirun, torchrun or Kubeflow say)",
       {{"nproc", "N", "start N ranks on this machine (default: all of the mesh)",
         set_integer<&Options::ranks, 1>},
        {"rank", "N", "number of this process, from 0; with --world-size",
         set_integer<&Options::rank, 0>},
        {"world-size", "N", "number of all processes", set_integer<&Options::world_size, 1>},
        {"master", "HOST[:PORT]", "where rank 0 listens for the others",
         set_path<&Options::master>},
        {"secret-file", "FILE",
         "a secret that all processes share, readable by its owner only; needed on several hosts "
         "unless they share --checkpoint",
         set_path<&Options::secret_file>},
        {"rendezvous-timeout", "SECONDS", "wait this long for all processes (default: 60)",
         set_integer<&Options::rendezvous_timeout, 1>}}},
      {"The run",
       {{"dim", "NAME=SIZE", "choose among the compiled sizes (default: by the data)",
         add_dimension},
        {"mesh", "PxD",
         "choose among the compiled meshes (default: the first one of this many ranks)",
         set_path<&Options::mesh>},
        {"threads", "N", "threads of a rank (default: OMP_NUM_THREADS, else one per CPU)",
         set_integer<&Options::threads, 1>},
        {"dry-run", "", "check data and memory and run one step without saving",
         set_flag<&Options::dry_run>},
        {"calibrate", "FILE.json",
         "a dry run, then measure each kernel and communication alone and write what sgtc "
         "--hardware reads",
         set_calibrate},
        {"print-plan", "", "print the embedded plans (JSON)", set_flag<&Options::print_plan>},
        {"version", "", "print the version", set_flag<&Options::version>},
        {"help", "", "print this text", set_flag<&Options::help>}}},
  };
  return table;
}

const OptionSpec* find_option(std::string_view name) {
  for (const OptionGroup& group : option_table()) {
    for (const OptionSpec& option : group.options) {
      if (option.name == name) return &option;
    }
  }
  return nullptr;
}

// Levenshtein's distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view name) {
  std::string_view best;
  size_t least = 4;
  for (const OptionGroup& group : option_table()) {
    for (const OptionSpec& option : group.options) {
      const size_t distance = edit_distance(name, option.name);
      if (distance < least) least = distance, best = option.name;
    }
  }
  return best.empty() ? "--help lists the options" : "did you mean --" + std::string(best) + "?";
}

// The option that `argument` begins; dies for anything else.
const OptionSpec& option_of(const std::string& argument, size_t equals) {
  if (!argument.starts_with("--")) {
    die_usage(argument, "is not an option", "options begin with --; --help lists them");
  }
  const std::string name = argument.substr(2, equals == argument.npos ? equals : equals - 2);
  const OptionSpec* option = find_option(name);
  if (!option) die_usage("--" + name, "is not an option", suggestion(name));
  return *option;
}

// Appends `text` in lines of at most 100 columns, each after the first indented by `indent`.
void append_wrapped(std::string& output, std::string_view text, size_t indent) {
  size_t column = indent;
  bool line_begins = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (!line_begins && column + 1 + end > 100) {
      output += '\n' + std::string(indent, ' ');
      column = indent;
      line_begins = true;
    }
    if (!line_begins) output += ' ';
    output += text.substr(0, end);
    column += end + (line_begins ? 0 : 1);
    line_begins = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  output += '\n';
}

}  // namespace

Options parse_options(int count, const char* const* arguments) {
  Options options;
  for (int i = 0; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const OptionSpec& option = option_of(argument, equals);
    const std::string name = "--" + std::string(option.name);
    std::string value;
    if (equals != argument.npos) {
      if (option.value.empty()) die_usage(name, "takes no value", "leave out what follows it");
      value = argument.substr(equals + 1);
    } else if (!option.value.empty()) {
      if (i + 1 == count) die_usage(name, "needs a value: " + std::string(option.value));
      value = arguments[++i];
    }
    const std::string expected = option.apply(options, value);
    if (!expected.empty()) die_usage(name, "expected " + expected + ", found '" + value + "'");
  }
  return options;
}

std::string help_text(const std::string& program) {
  constexpr size_t kIndent = 30;
  std::string text = "usage: " + program + " [OPTION]...\n";
  for (const OptionGroup& group : option_table()) {
    text += "\n" + std::string(group.title) + ":\n";
    for (const OptionSpec& option : group.options) {
      std::string line = "  --" + std::string(option.name);
      if (!option.value.empty()) line += ' ' + std::string(option.value);
      if (line.size() + 2 > kIndent) {
        text += line + '\n';
        line.clear();
      }
      line.resize(kIndent, ' ');
      text += line;
      append_wrapped(text, option.help, kIndent);
    }
  }
  return text;
}

}  // namespace sgtc::runtime
