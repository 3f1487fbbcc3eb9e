#include "passes/loop_nest.h"

#include <algorithm>
#include <sstream>

namespace sgtc {
namespace {

constexpr int64_t kBlockElements = 16384;
constexpr int64_t kColumnBlock = 64;
// A vector axis shorter than this takes in the next atom: half-filled vectors cost more than
// indices that are not affine along the axis.
constexpr int64_t kWantedVectorExtent = 32;

template <class Nest, class Visit>
void for_each_index(Nest& nest, const Visit& visit) {
  for (auto& expression : nest.expressions) {
    if (!expression.index.coefficients.empty()) visit(expression.index);
    for (auto& guard : expression.guards) visit(guard.index);
  }
  for (auto& store : nest.stores) visit(store.index);
}

bool can_join(const LoopNest& nest, size_t outer) {
  const Atom& a = nest.atoms[outer];
  const Atom& b = nest.atoms[outer + 1];
  if (a.reduced != b.reduced) return false;
  bool joins = true;
  for_each_index(nest, [&](const AffineIndex& index) {
    joins = joins && index.coefficients[outer] == index.coefficients[outer + 1] * b.extent;
  });
  return joins;
}

void join(LoopNest& nest, size_t outer) {
  nest.atoms[outer].extent *= nest.atoms[outer + 1].extent;
  nest.atoms.erase(nest.atoms.begin() + static_cast<int64_t>(outer) + 1);
  for_each_index(nest, [&](AffineIndex& index) {
    index.coefficients.erase(index.coefficients.begin() + outer);
  });
}

void join_atoms(LoopNest& nest, bool is_epilogue) {
  for (size_t i = nest.atoms.size(); i-- > 1;) {
    int32_t position = static_cast<int32_t>(i);
    bool border = is_epilogue && (position == nest.row_begin || position == nest.vector_begin);
    if (border || !can_join(nest, i - 1)) continue;
    join(nest, i - 1);
    if (is_epilogue && position < nest.row_begin) --nest.row_begin;
    if (is_epilogue && position < nest.vector_begin) --nest.vector_begin;
  }
}

void choose_vector_axis(LoopNest& nest) {
  size_t begin = nest.atoms.size();
  int64_t extent = 1;
  bool lanes = nest.order == ReductionOrder::kLanes;
  while (begin > 0 && nest.atoms[begin - 1].reduced == lanes &&
         (lanes || extent < kWantedVectorExtent)) {
    extent *= nest.atoms[--begin].extent;
  }
  nest.vector_begin = static_cast<int32_t>(begin);
}

// Atoms that element-level values depend on.
bool is_element_atom(const LoopNest& nest, size_t atom) {
  return nest.order == ReductionOrder::kNone ? static_cast<int32_t>(atom) >= nest.vector_begin
                                             : nest.atoms[atom].reduced;
}

Level level_of(const LoopNest& nest, const AffineIndex& index) {
  Level level = Level::kKernel;
  for (size_t i = 0; i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] == 0) continue;
    level = std::max(level, is_element_atom(nest, i) ? Level::kElement : Level::kRow);
  }
  for (const AffineIndex::Computed& term : index.computed) {
    level = std::max(level, nest.expressions[static_cast<size_t>(term.expression)].level);
  }
  return level;
}

int32_t depth_of(const LoopNest& nest, const AffineIndex& index) {
  int32_t depth = 0;
  for (const AffineIndex::Computed& term : index.computed) {
    depth = std::max(depth, nest.expressions[static_cast<size_t>(term.expression)].depth);
  }
  return depth;
}

void set_level(LoopNest& nest, Expression& expression) {
  Level level = level_of(nest, expression.index);
  int32_t depth = depth_of(nest, expression.index);
  for (const Guard& guard : expression.guards) {
    level = std::max(level, level_of(nest, guard.index));
    depth = std::max(depth, depth_of(nest, guard.index));
  }
  for (ExpressionId operand : expression.operands) {
    level = std::max(level, nest.expressions[static_cast<size_t>(operand)].level);
    depth = std::max(depth, nest.expressions[static_cast<size_t>(operand)].depth);
  }
  if (expression.kind == Expression::Kind::kGiven) level = Level::kElement;
  if (expression.kind == Expression::Kind::kReduce) {
    level = Level::kRow;
    depth = nest.expressions[static_cast<size_t>(expression.operands[0])].depth + 1;
  }
  expression.level = level;
  expression.depth = depth;
}

bool is_element_store(const LoopNest& nest, const Store& store) {
  return nest.expressions[static_cast<size_t>(store.value)].level == Level::kElement ||
         level_of(nest, store.index) == Level::kElement;
}

void set_sweeps(LoopNest& nest) {
  nest.sweeps = nest.order == ReductionOrder::kNone ? 1 : 0;
  for (const Expression& expression : nest.expressions) {
    if (expression.kind == Expression::Kind::kReduce) {
      nest.sweeps = std::max(nest.sweeps, expression.depth);
    }
  }
  for (const Store& store : nest.stores) {
    if (is_element_store(nest, store)) {
      nest.sweeps = std::max(nest.sweeps, sweep_of(nest, store) + 1);
    }
  }
}

void collect_element_work(const LoopNest& nest, ExpressionId id, std::vector<bool>& seen,
                          std::vector<ExpressionId>& work) {
  const Expression& expression = nest.expressions[static_cast<size_t>(id)];
  if (seen[static_cast<size_t>(id)] || expression.level != Level::kElement) return;
  seen[static_cast<size_t>(id)] = true;
  auto visit_index = [&](const AffineIndex& index) {
    for (const AffineIndex::Computed& term : index.computed) {
      collect_element_work(nest, term.expression, seen, work);
    }
  };
  for (ExpressionId operand : expression.operands) collect_element_work(nest, operand, seen, work);
  visit_index(expression.index);
  for (const Guard& guard : expression.guards) visit_index(guard.index);
  work.push_back(id);
}

void append_guards(std::ostream& out, const std::vector<Guard>& guards) {
  for (const Guard& guard : guards) {
    out << " if " << guard.low << " <= " << to_string(guard.index) << " < " << guard.high;
  }
}

void append_expression(std::ostream& out, const LoopNest& nest, const Expression& expression) {
  using Kind = Expression::Kind;
  out << name_of(expression.dtype) << " ";
  switch (expression.kind) {
    case Kind::kLoad:
      out << "load argument" << expression.argument << "[" << to_string(expression.index) << "]";
      break;
    case Kind::kConstant:
      out << "constant " << std::hexfloat << expression.real << std::defaultfloat << " "
          << expression.integer;
      break;
    case Kind::kIndex:
      out << "index " << to_string(expression.index);
      break;
    case Kind::kCompute:
      out << name_of(expression.op);
      break;
    case Kind::kSelect:
      out << "select";
      break;
    case Kind::kChecked:
      out << (expression.op == Op::kPick ? "checked from 0 " : "checked ") << expression.integer;
      break;
    case Kind::kRandom:
      out << name_of(expression.op) << " stream " << expression.integer << " at "
          << to_string(expression.index);
      break;
    case Kind::kReduce:
      out << name_of(expression.op)
          << (expression.operands.size() == 2 ? " exp of difference" : "");
      break;
    case Kind::kGiven:
      out << "given";
      break;
  }
  const bool has_flags = expression.kind == Kind::kCompute || expression.kind == Kind::kReduce;
  if (has_flags && expression.integer != 0) out << " flags " << expression.integer;
  for (ExpressionId operand : expression.operands) {
    out << " " << name_of(nest.expressions[static_cast<size_t>(operand)].dtype) << " e" << operand;
  }
  append_guards(out, expression.guards);
}

void append_header(std::ostream& out, const LoopNest& nest) {
  out << "domain [";
  for (size_t i = 0; i < nest.atoms.size(); ++i) {
    out << (i == 0 ? "" : ", ") << nest.atoms[i].extent << (nest.atoms[i].reduced ? "r" : "");
  }
  out << "]";
  if (nest.order == ReductionOrder::kLanes) out << " lanes";
  if (nest.order == ReductionOrder::kSequential) out << " sequential";
  out << " vector " << nest.vector_begin;
  if (nest.row_begin != 0) out << " rows " << nest.row_begin;
  out << "\n";
  for (size_t i = 0; i < nest.arguments.size(); ++i) {
    const NestArgument& argument = nest.arguments[i];
    out << "argument" << i << " " << name_of(argument.dtype) << "[" << argument.elements << "]"
        << (argument.read ? " read" : "") << (argument.written ? " written" : "") << "\n";
  }
}

}  // namespace

int64_t reduced_extent(const LoopNest& nest) {
  int64_t extent = 1;
  for (const Atom& atom : nest.atoms) extent *= atom.reduced ? atom.extent : 1;
  return extent;
}

BlockGrid block_grid(const LoopNest& nest) {
  BlockGrid grid;
  for (size_t i = 0; i < nest.atoms.size(); ++i) {
    bool vector = static_cast<int32_t>(i) >= nest.vector_begin;
    if (vector) grid.columns *= nest.atoms[i].extent;
    if (!vector && !nest.atoms[i].reduced) grid.rows *= nest.atoms[i].extent;
  }
  grid.columns_per_block = std::max<int64_t>(grid.columns, 1);
  if (nest.order == ReductionOrder::kNone) {
    grid.columns_per_block = std::min(grid.columns_per_block, kBlockElements);
  } else if (nest.order == ReductionOrder::kSequential) {
    grid.columns_per_block = std::min(grid.columns_per_block, kColumnBlock);
  }
  int64_t row_work = nest.order == ReductionOrder::kLanes
                         ? reduced_extent(nest)
                         : grid.columns_per_block * reduced_extent(nest);
  grid.rows_per_block = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, row_work));
  grid.rows_per_block = std::min(grid.rows_per_block, std::max<int64_t>(1, grid.rows));
  auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  grid.row_blocks = parts(grid.rows, grid.rows_per_block);
  grid.column_blocks =
      nest.order == ReductionOrder::kLanes ? 1 : parts(grid.columns, grid.columns_per_block);
  return grid;
}

VectorPattern vector_pattern(const LoopNest& nest, const AffineIndex& index, bool is_aligned,
                             int64_t lanes) {
  size_t begin = static_cast<size_t>(nest.vector_begin);
  size_t end = nest.atoms.size();
  if (begin == end || index.coefficients.empty()) return {};
  int64_t innermost = index.coefficients[end - 1];
  int64_t extent = 1;
  bool linear = true;
  for (size_t i = end; i-- > begin;) {
    linear = linear && index.coefficients[i] == innermost * extent;
    extent *= nest.atoms[i].extent;
  }
  if (linear) return {VectorPattern::Kind::kStride, innermost};
  bool stays = is_aligned && nest.atoms[end - 1].extent % lanes == 0;
  return stays ? VectorPattern{VectorPattern::Kind::kInnermost, innermost}
               : VectorPattern{VectorPattern::Kind::kScattered, 0};
}

int32_t sweep_of(const LoopNest& nest, const Store& store) {
  return std::max(nest.expressions[static_cast<size_t>(store.value)].depth,
                  depth_of(nest, store.index));
}

std::vector<std::vector<ExpressionId>> element_work(const LoopNest& nest) {
  std::vector<std::vector<ExpressionId>> work(static_cast<size_t>(nest.sweeps));
  for (int32_t sweep = 0; sweep < nest.sweeps; ++sweep) {
    std::vector<bool> seen(nest.expressions.size(), false);
    std::vector<ExpressionId>& list = work[static_cast<size_t>(sweep)];
    for (const Expression& expression : nest.expressions) {
      if (expression.kind == Expression::Kind::kReduce && expression.depth == sweep + 1) {
        collect_element_work(nest, expression.operands[0], seen, list);
      }
    }
    for (const Store& store : nest.stores) {
      if (sweep_of(nest, store) == sweep) collect_element_work(nest, store.value, seen, list);
    }
  }
  return work;
}

void finish_nest(LoopNest& nest, bool is_epilogue) {
  join_atoms(nest, is_epilogue);
  if (!is_epilogue) choose_vector_axis(nest);
  for (Expression& expression : nest.expressions) set_level(nest, expression);
  set_sweeps(nest);
}

std::string to_text(const LoopNest& nest) {
  std::ostringstream out;
  append_header(out, nest);
  for (size_t i = 0; i < nest.expressions.size(); ++i) {
    out << "e" << i << " = ";
    append_expression(out, nest, nest.expressions[i]);
    out << "\n";
  }
  for (const Store& store : nest.stores) {
    out << "argument" << store.argument << "[" << to_string(store.index);
    if (store.micro_batches > 0) {
      out << " + " << store.micro_batch_stride << "*(micro_batch mod " << store.micro_batches
          << ")";
    }
    out << "] = e" << store.value << "\n";
  }
  return out.str();
}

}  // namespace sgtc
