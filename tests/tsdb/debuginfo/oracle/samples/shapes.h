/* Samples for the comparison of names and lines: templates, virtual functions, namespaces. */
#ifndef SAMPLES_SHAPES_H
#define SAMPLES_SHAPES_H

#include <memory>
#include <string>
#include <vector>

namespace shapes
{
struct Point {
	double x, y;
	Point operator+(const Point &o) const { return { x + o.x, y + o.y }; }
	double norm() const { return x * x + y * y; }
};

class Shape
{
  public:
	explicit Shape(std::string name) : name_(std::move(name)) {}
	virtual ~Shape() = default;
	virtual double area() const = 0;
	const std::string &name() const { return name_; }

  private:
	std::string name_;
};

template <typename T, typename F> T fold(const std::vector<T> &v, T start, F f)
{
	for (const auto &x : v)
		start = f(start, x);
	return start;
}

template <int N> struct Power {
	static double of(double v) { return v * Power<N - 1>::of(v); }
};
template <> struct Power<0> {
	static double of(double) { return 1; }
};

std::vector<std::unique_ptr<Shape>> make(int n);
double total(const std::vector<std::unique_ptr<Shape>> &v);
} // namespace shapes

#endif
