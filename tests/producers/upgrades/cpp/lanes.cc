// Finds ways through a harbour's lanes: fills tables of what lies where, looks
// up neighbours, and empties the tables again. The tables are Boost's:
// unordered_map of 1.74 on side a; on side b (-DFLAT) unordered_flat_map of
// 1.81, which holds its elements in one array. Usage: lanes [ROUNDS]
#ifdef FLAT
#include <boost/unordered/unordered_flat_map.hpp>
#else
#include <boost/unordered_map.hpp>
#endif
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

namespace lanes {

struct Place {
  int cost;
  long from;
};

#ifdef FLAT
using Table = boost::unordered_flat_map<long, Place>;
#else
using Table = boost::unordered_map<long, Place>;
#endif

static const long kWidth = 300;

__attribute__((noinline)) bool IsWater(long cell, unsigned tide) {
  unsigned x = cell % kWidth, y = cell / kWidth;
  return ((x * 2654435761u ^ y * 40503u ^ tide) >> 5) % 9 > 1;
}

// What can be reached from a cell, and how.
__attribute__((noinline)) Table Explore(long start, unsigned tide, int steps) {
  Table known;
  known.reserve(static_cast<size_t>(steps));
  std::deque<long> open{start};
  known.emplace(start, Place{0, -1});
  while (!open.empty() && steps-- > 0) {
    long cell = open.front();
    open.pop_front();
    int cost = known.find(cell)->second.cost + 1;
    for (long step : {-1L, 1L, -kWidth, kWidth}) {
      long next = cell + step;
      if (next < 0 || next >= kWidth * kWidth || !IsWater(next, tide)) continue;
      if (known.emplace(next, Place{cost, cell}).second) open.push_back(next);
    }
  }
  return known;
}

// How far it is from where two ships can both be.
__attribute__((noinline)) long Meet(const Table& one, const Table& other) {
  long best = 0;
  for (const auto& place : one) {
    auto there = other.find(place.first);
    if (there != other.end()) best += place.second.cost + there->second.cost;
  }
  return best;
}

// Forgets what is too far away.
__attribute__((noinline)) void Forget(Table& known, int limit) {
  for (auto it = known.begin(); it != known.end();)
    if (it->second.cost > limit) known.erase(it++);
    else ++it;
}

// What the program itself does: adds up the ways back.
__attribute__((noinline)) long WayBack(const Table& known) {
  long sum = 0;
  std::vector<long> cells;
  for (const auto& place : known) cells.push_back(place.second.from);
  for (long turn = 1; turn <= 12; turn++)
    for (long cell : cells) sum += (cell * turn) % 17;
  return sum;
}

}  // namespace lanes

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 1200;
  long sum = 0;
  for (int round = 0; round < rounds; round++) {
    lanes::Table one = lanes::Explore(lanes::kWidth * 40 + 41, round, 20000);
    lanes::Table other = lanes::Explore(lanes::kWidth * 150 + 160, round, 20000);
    sum += lanes::Meet(one, other);
    lanes::Forget(one, 60);
    sum += lanes::WayBack(one) + static_cast<long>(one.size());
  }
  std::printf("%ld\n", sum);
}
