#include "shapes.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <unordered_map>

static double words(int n)
{
	std::unordered_map<std::string, std::vector<int>> m;

	for (int i = 0; i < n; i++)
		m["w" + std::to_string(i % 7)].push_back(i);
	double sum = 0;
	for (auto &[key, v] : m)
		sum += shapes::fold(v, 0, std::plus<int>()) + static_cast<double>(key.size());
	return sum;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? (int)std::strtol(argv[1], nullptr, 10) : 10;
	std::function<double(int)> f = [&](int i) {
		if (i < 0)
			throw std::runtime_error("negative");
		return shapes::total(shapes::make(i)) + words(i);
	};

	try {
		std::printf("%f\n", f(n));
	} catch (const std::exception &e) {
		std::printf("%s\n", e.what());
	}
	return 0;
}
