#include "shapes.h"

#include <algorithm>
#include <map>

namespace shapes
{
namespace
{
class Circle : public Shape
{
  public:
	Circle(Point p, double r) : Shape("circle"), p_(p), r_(r) {}
	double area() const override { return 3.14 * Power<2>::of(r_) + p_.norm(); }

  private:
	Point p_;
	double r_;
};

class Polygon : public Shape
{
  public:
	explicit Polygon(std::vector<Point> v) : Shape("polygon"), v_(std::move(v)) {}
	double area() const override
	{
		return fold(v_, Point{ 0, 0 }, [](Point a, const Point &b) { return a + b; }).norm();
	}

  private:
	std::vector<Point> v_;
};
} // namespace

std::vector<std::unique_ptr<Shape>> make(int n)
{
	std::vector<std::unique_ptr<Shape>> v;

	for (int i = 0; i < n; i++) {
		if (i % 2)
			v.push_back(std::make_unique<Circle>(Point{ 1.0 * i, 2 }, i));
		else
			v.push_back(std::make_unique<Polygon>(std::vector<Point>(3, { 1.0, 1.0 * i })));
	}
	std::sort(v.begin(), v.end(), [](const auto &a, const auto &b) {
		struct Order {
			static __attribute__((noinline)) bool less(const Shape &x, const Shape &y)
			{
				return x.area() < y.area();
			}
		};
		return Order::less(*a, *b);
	});
	return v;
}

double total(const std::vector<std::unique_ptr<Shape>> &v)
{
	std::map<std::string, double> by_name;
	double sum = 0;

	for (const auto &s : v)
		by_name[s->name()] += s->area();
	for (const auto &[name, area] : by_name)
		sum += area * Power<3>::of(static_cast<double>(name.size()));
	return sum;
}
} // namespace shapes
