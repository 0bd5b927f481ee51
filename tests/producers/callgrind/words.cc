// Containers, strings and templates.
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

template <typename T> static T total(const std::vector<T> &values) {
	T sum{};
	for (const T &value : values)
		sum += value;
	return sum;
}

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};
struct Square : Shape {
	double side;
	explicit Square(double side) : side(side) {}
	double area() const override { return side * side; }
};
struct Circle : Shape {
	double radius;
	explicit Circle(double radius) : radius(radius) {}
	double area() const override { return 3 * radius * radius; }
};

int main() {
	std::map<std::string, int> counts;
	std::istringstream text("the cat sat on the mat and the dog sat on the cat");
	std::string word;
	while (text >> word)
		counts[word]++;
	std::vector<int> numbers;
	for (const auto &entry : counts)
		numbers.push_back(entry.second);
	std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
	std::vector<Shape *> shapes;
	for (int i = 0; i < 20; i++)
		shapes.push_back(i % 2 ? static_cast<Shape *>(new Square(i)) : new Circle(i));
	double area = 0;
	for (const Shape *shape : shapes) {
		area += shape->area();
		delete shape;
	}
	std::cout << total(numbers) << ' ' << area << '\n';
}
