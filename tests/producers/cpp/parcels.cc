// Packs parcels into vans and plans their tours, again and again. It is
// profiled from outside, with the CPU and heap profilers of gperftools. Built
// with -DBRANCH, tours copy the way for every step they try (slower), the tours
// of the first round are kept, and parcels are no longer sorted before they are
// packed. Usage: parcels ROUNDS
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace parcels {

struct Parcel {
  std::string address;
  double x, y;
  int weight;
};

struct Tour {
  std::vector<int> stops;
  double length = 0;
};

static std::vector<Parcel> Collect(int count) {
  std::vector<Parcel> parcels;
  unsigned random = 20;
  auto roll = [&random](unsigned sides) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % sides;
  };
  for (int i = 0; i < count; i++) {
    std::string address = "House number " + std::to_string(roll(200)) + ", long street " + std::to_string(i);
    parcels.push_back({address, roll(1000) / 10.0, roll(1000) / 10.0, static_cast<int>(1 + roll(30))});
  }
  return parcels;
}

static inline double Distance(const Parcel& a, const Parcel& b) { return std::hypot(a.x - b.x, a.y - b.y); }

// Extends a tour stop by stop, trying everything below the best length so far.
__attribute__((noinline)) static void Extend(const std::vector<Parcel>& load, Tour& way, std::vector<bool>& used,
                                             Tour& best) {
  if (way.length >= best.length) return;
  if (way.stops.size() == load.size()) {
    best = way;
    return;
  }
  for (size_t next = 0; next < load.size(); next++) {
    if (used[next]) continue;
    double step = way.stops.empty() ? 0 : Distance(load[way.stops.back()], load[next]);
    used[next] = true;
#ifdef BRANCH
    Tour longer = way;
    longer.stops.push_back(static_cast<int>(next));
    longer.length += step;
    Extend(load, longer, used, best);
#else
    way.stops.push_back(static_cast<int>(next));
    way.length += step;
    Extend(load, way, used, best);
    way.length -= step;
    way.stops.pop_back();
#endif
    used[next] = false;
  }
}

__attribute__((noinline)) static Tour Plan(const std::vector<Parcel>& load) {
  Tour way, best;
  best.length = 1e9;
  std::vector<bool> used(load.size());
  Extend(load, way, used, best);
  return best;
}

#ifndef BRANCH
__attribute__((noinline)) static void SortByWeight(std::vector<Parcel>& parcels) {
  std::stable_sort(parcels.begin(), parcels.end(),
                   [](const Parcel& a, const Parcel& b) { return a.weight > b.weight; });
}
#endif

// Fills vans one after another, seven parcels each.
__attribute__((noinline)) static std::vector<std::vector<Parcel>> Pack(std::vector<Parcel> parcels) {
#ifndef BRANCH
  SortByWeight(parcels);
#endif
  std::vector<std::vector<Parcel>> vans;
  for (size_t i = 0; i < parcels.size(); i++) {
    if (i % 7 == 0) vans.emplace_back();
    vans.back().push_back(parcels[i]);
  }
  return vans;
}

__attribute__((noinline)) static std::string Label(const Parcel& parcel) {
  std::string label;
  for (char letter : parcel.address) {
    label += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
  }
  return label + " (" + std::to_string(parcel.weight) + " kg)";
}

#ifdef BRANCH
// Keeps a tour in use until the end.
__attribute__((noinline)) static void Keep(const Tour& tour) {
  static std::vector<Tour>& kept = *new std::vector<Tour>;
  kept.push_back(tour);
}
#endif

}  // namespace parcels

int main(int, char** arguments) {
  using namespace parcels;
  int rounds = std::atoi(arguments[1]);
  double length = 0;
  std::vector<std::string>& labels = *new std::vector<std::string>;  // in use until the end
  std::vector<Parcel> day = Collect(700);
  for (int round = 0; round < rounds; round++) {
    for (const std::vector<Parcel>& van : Pack(day)) {
      Tour tour = Plan(van);
      length += tour.length;
#ifdef BRANCH
      if (round == 0) Keep(tour);
#endif
      if (round % 10 > 0) continue;
      for (const Parcel& parcel : van) labels.push_back(Label(parcel));
    }
  }
  std::printf("%zu labels, %.1f km\n", labels.size(), length);
}
