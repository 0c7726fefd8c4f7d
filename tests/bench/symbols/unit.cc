// One unit of a large program: compiled many times, each with another UNIT, so that no two share an
// instantiation. The standard library's containers, algorithms and regular expressions give the
// deep inlining of C++ as it is written.
#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace product
{

template <int U, int K> struct record {
	std::string name;
	std::vector<double> values;
	std::map<std::string, int> counts;
	std::optional<std::string> note;

	bool operator<(const record &o) const
	{
		return std::tie(name, values) < std::tie(o.name, o.values);
	}
	bool operator==(const record &o) const { return name == o.name && values == o.values; }
	double sum() const { return std::accumulate(values.begin(), values.end(), 0.0); }
};

template <int U, int K> struct hasher {
	size_t operator()(const record<U, K> &r) const
	{
		return std::hash<std::string>()(r.name) ^ U ^ K;
	}
};

template <int U, int K> struct letters : std::regex_traits<char> {
};

template <int U, int K> class store
{
  public:
	using item = record<U, K>;
	using event = std::variant<item, std::string, std::vector<item>, int>;

	void add(item r)
	{
		by_name_[r.name].push_back(std::make_shared<item>(r));
		seen_.insert(r);
		queue_.push_back(event(std::move(r)));
	}

	double report(const std::function<bool(const item &)> &wanted)
	{
		std::vector<item> all;
		for (auto &[name, list] : by_name_)
			for (auto &p : list)
				if (wanted(*p))
					all.push_back(*p);
		std::sort(
			all.begin(), all.end(), [](const item &a, const item &b) { return a.sum() > b.sum(); });
		std::stable_sort(all.begin(), all.end());
		all.erase(std::unique(all.begin(), all.end()), all.end());
		std::list<item> rest(all.begin(), all.end());
		rest.sort();
		double sum = 0;
		for (auto &e : queue_)
			sum += std::visit(
				[](auto &v) -> double {
					using type = std::decay_t<decltype(v)>;
					if constexpr (std::is_same_v<type, item>)
						return v.sum();
					else if constexpr (std::is_same_v<type, int>)
						return v;
					else
						return static_cast<double>(v.size());
				},
				e);
		for (auto &r : rest)
			sum += r.sum();
		return sum +
			static_cast<double>(std::partition(all.begin(), all.end(), wanted) - all.begin());
	}

	bool parse(const std::string &text)
	{
		std::basic_regex<char, letters<U, K>> re("([a-z]+)=([0-9]+(\\.[0-9]*)?);?");
		std::match_results<std::string::const_iterator> m;
		std::ostringstream out;
		auto from = text.begin();
		while (std::regex_search(from, text.end(), m, re)) {
			add({ m[1], { std::stod(m[2]) }, { { m[1], 1 } }, m[2].str() });
			from = m[0].second;
			out << m[1] << '\n';
		}
		return !out.str().empty();
	}

  private:
	std::map<std::string, std::vector<std::shared_ptr<item>>> by_name_;
	std::unordered_map<item, int, hasher<U, K>> counts_;
	std::set<item> seen_;
	std::deque<event> queue_;
};

template <int U, int... K> double run(const std::string &text, std::integer_sequence<int, K...>)
{
	return (0.0 + ... + [&] {
		store<U, K> s;
		return s.parse(text) ? s.report([](const record<U, K> &r) { return r.name.size() > K; }) :
							   0;
	}());
}

} // namespace product

double NAME(const std::string &text)
{
	return product::run<UNIT>(text, std::make_integer_sequence<int, STORES>());
}
