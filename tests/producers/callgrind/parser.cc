// A recursive descent parser with exceptions.
#include <cctype>
#include <iostream>
#include <stdexcept>
#include <string>

class Parser {
	std::string text;
	size_t at = 0;

	long primary() {
		if (at < text.size() && text[at] == '(') {
			at++;
			long value = sum();
			if (at == text.size() || text[at] != ')')
				throw std::runtime_error("unbalanced");
			at++;
			return value;
		}
		long value = 0;
		while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])))
			value = value * 10 + (text[at++] - '0');
		return value;
	}
	long product() {
		long value = primary();
		while (at < text.size() && text[at] == '*') {
			at++;
			value *= primary();
		}
		return value;
	}
	long sum() {
		long value = product();
		while (at < text.size() && text[at] == '+') {
			at++;
			value += product();
		}
		return value;
	}

  public:
	explicit Parser(std::string text) : text(std::move(text)) {}
	long parse() { return sum(); }
};

int main() {
	long value = 0;
	for (const char *text : {"1+2*3", "(1+2)*(3+4)", "((((5))))+1", "2*(3+(4*(5+6)))", "(1+2"}) {
		try {
			value += Parser(text).parse();
		} catch (const std::exception &) {
			value += 1000;
		}
	}
	std::cout << value << '\n';
}
