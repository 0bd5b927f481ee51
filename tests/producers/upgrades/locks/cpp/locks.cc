// A harbour's office: clerks book what ships owe in a ledger, pilots read and
// write a board, and couriers fill and empty a bag, each behind a lock. The
// lock is our own: where it has to wait it keeps the stack and how long, and at
// the end all stacks are written as contention text, which google/pprof reads.
// What is changed on side b of a pair:
//
//   held   the ledger is held for 10 ms instead of 1 ms
//   often  a clerk books four times a ship instead of once
//   two    the ledger has two halves, with a lock each
//
// Usage: locks a|held|often|two OUT.txt
#include <execinfo.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace harbour {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// What was waited, by stack.
struct Waits {
  struct Sum {
    long times = 0, nanoseconds = 0;
  };
  std::mutex mutex;
  std::map<std::vector<void*>, Sum> by_stack;
};

static Waits waits;

class Lock {
 public:
  __attribute__((noinline)) void Acquire() {
    if (mutex_.try_lock()) return;
    auto start = steady_clock::now();
    mutex_.lock();
    long waited = std::chrono::duration_cast<nanoseconds>(steady_clock::now() - start).count();
    Note(waited);
  }
  void Release() { mutex_.unlock(); }

 private:
  // The stack from Acquire on.
  __attribute__((noinline)) void Note(long waited) {
    void* frames[32];
    int depth = backtrace(frames, 32);
    std::lock_guard<std::mutex> guard(waits.mutex);
    auto& sum = waits.by_stack[std::vector<void*>(frames + 1, frames + depth)];
    sum.times++;
    sum.nanoseconds += waited;
  }
  std::mutex mutex_;
};

class Held {
 public:
  explicit Held(Lock& lock) : lock_(lock) { lock_.Acquire(); }
  ~Held() { lock_.Release(); }

 private:
  Lock& lock_;
};

struct Half {
  Lock lock;
  std::map<int, int> owed;
};

class Ledger {
 public:
  Ledger(int halves, microseconds held) : halves_(halves), held_(held) {}

  __attribute__((noinline)) void Book(int ship, int amount) {
    Half& half = halves_[ship % halves_.size()];
    Held held(half.lock);
    half.owed[ship] += amount;
    std::this_thread::sleep_for(held_);
  }

  __attribute__((noinline)) int Sum() {
    int sum = 0;
    for (Half& half : halves_) {
      Held held(half.lock);
      for (const auto& entry : half.owed) sum += entry.second;
    }
    return sum;
  }

 private:
  std::vector<Half> halves_;
  microseconds held_;
};

class Board {
 public:
  __attribute__((noinline)) void Post(int pilot, int ship) {
    Held held(lock_);
    at_[pilot] = ship;
    std::this_thread::sleep_for(microseconds(500));
  }

  __attribute__((noinline)) int Look(int pilot) {
    Held held(lock_);
    std::this_thread::sleep_for(microseconds(300));
    return at_[pilot];
  }

 private:
  Lock lock_;
  std::map<int, int> at_;
};

class Bag {
 public:
  __attribute__((noinline)) void Put(int letter) {
    Held held(lock_);
    letters_.push_back(letter);
    std::this_thread::sleep_for(microseconds(200));
  }

  __attribute__((noinline)) int Take() {
    Held held(lock_);
    std::this_thread::sleep_for(microseconds(400));
    if (letters_.empty()) return 0;
    int letter = letters_.back();
    letters_.pop_back();
    return letter;
  }

 private:
  Lock lock_;
  std::vector<int> letters_;
};

const int kClerks = 6, kShips = 40, kPilots = 4, kTides = 60, kCouriers = 3, kWays = 80;

__attribute__((noinline)) void Settle(Ledger& ledger, int clerk, int times) {
  for (int ship = 0; ship < kShips; ship++) {
    for (int part = 0; part < times; part++) ledger.Book(ship * kClerks + (clerk + part) % kClerks, 100);
    if (ship % 10 == 9) ledger.Sum();
  }
}

__attribute__((noinline)) void Guide(Board& board, int pilot) {
  for (int tide = 0; tide < kTides; tide++) {
    board.Post(pilot, tide);
    board.Look((pilot + 1) % kPilots);
  }
}

__attribute__((noinline)) void Carry(Bag& bag, int courier) {
  for (int way = 0; way < kWays; way++) {
    bag.Put(courier + way);
    bag.Take();
  }
}

// Contention text: a line a stack with what was waited and how often, then
// where binaries lie in memory.
void Write(const char* file) {
  std::ofstream out(file);
  out << "--- contention:\ncycles/second = 1000000000\nsampling period = 1\n";
  for (const auto& entry : waits.by_stack) {
    out << entry.second.nanoseconds << ' ' << entry.second.times << " @";
    for (void* frame : entry.first) out << ' ' << frame;
    out << '\n';
  }
  out << "\n--- Memory map: ---\n" << std::ifstream("/proc/self/maps").rdbuf();
}

}  // namespace harbour

int main(int argc, char** argv) {
  using namespace harbour;
  if (argc != 3) {
    std::fprintf(stderr, "usage: locks a|held|often|two OUT.txt\n");
    return 2;
  }
  std::string change = argv[1];
  Ledger ledger(change == "two" ? 2 : 1, microseconds(change == "held" ? 10000 : 1000));
  int times = change == "often" ? 4 : 1;
  Board board;
  Bag bag;
  std::vector<std::thread> all;
  for (int clerk = 0; clerk < kClerks; clerk++) all.emplace_back([&, clerk] { Settle(ledger, clerk, times); });
  for (int pilot = 0; pilot < kPilots; pilot++) all.emplace_back([&, pilot] { Guide(board, pilot); });
  for (int courier = 0; courier < kCouriers; courier++) all.emplace_back([&, courier] { Carry(bag, courier); });
  for (auto& thread : all) thread.join();
  Write(argv[2]);
  std::printf("%d owed\n", ledger.Sum());
}
