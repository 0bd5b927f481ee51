// Sorts letters into boxes by street, and passes each through some hands that
// keep a copy of its address. Side a is built with the old strings of the
// standard library (_GLIBCXX_USE_CXX11_ABI=0), whose copies share what they
// hold; side b with the new ones, whose copies do not. Usage: letters [ROUNDS]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace letters {

struct Letter {
  std::string address;
  std::string sender;
  int weight;
};

using Boxes = std::map<int, std::vector<Letter>>;

__attribute__((noinline)) std::vector<Letter> Collect(int count, unsigned day) {
  std::vector<Letter> bag;
  for (int i = 0; i < count; i++) {
    day = day * 1664525u + 1013904223u;
    char address[64];
    std::snprintf(address, sizeof address, "Long street %u, house %u, third door", (day >> 8) % 400, (day >> 20) % 90);
    bag.push_back(Letter{address, "The office of letters, desk of returns", static_cast<int>(day >> 25)});
  }
  return bag;
}

// The number of the street.
__attribute__((noinline)) int Street(const std::string& address) {
  int number = 0;
  for (char c : address) {
    if (c == ',') break;
    if (c >= '0' && c <= '9') number = number * 10 + (c - '0');
  }
  return number;
}

__attribute__((noinline)) void Sort(const std::vector<Letter>& bag, Boxes& boxes) {
  for (const Letter& letter : bag) boxes[Street(letter.address) % 40].push_back(letter);
}

// Each hand notes what it had.
__attribute__((noinline)) long Carry(const Boxes& boxes) {
  std::vector<std::string> notes;
  long weight = 0;
  for (const auto& box : boxes)
    for (const Letter& letter : box.second) {
      notes.push_back(letter.address);
      weight += letter.weight;
    }
  return weight + static_cast<long>(notes.size());
}

// What the program itself does with the text.
__attribute__((noinline)) unsigned Stamp(const Boxes& boxes) {
  unsigned mark = 0;
  for (const auto& box : boxes)
    for (const Letter& letter : box.second)
      for (const char *c = letter.address.c_str(); *c; c++) mark = mark * 31 + static_cast<unsigned>(*c);
  return mark;
}

}  // namespace letters

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 1600;
  unsigned long sum = 0;
  for (int round = 0; round < rounds; round++) {
    letters::Boxes boxes;
    letters::Sort(letters::Collect(6000, round), boxes);
    for (int hand = 0; hand < 4; hand++) sum += letters::Carry(boxes);
    sum += letters::Stamp(boxes) % 7;
  }
  std::printf("%lu\n", sum);
}
