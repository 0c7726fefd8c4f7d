/*
 * A service of C++ that serves its profiles as pprof servers of C++ do. It burns time and keeps
 * memory in functions of known names.
 *
 *	GET  /pprof/profile?seconds=1   gperftools' CPU profile
 *	GET  /pprof/heap                gperftools' sampled heap, or with JEMALLOC jemalloc's
 *	GET  /pprof/allocs              gperftools' heap profiler: all that was allocated
 *	POST /pprof/symbol              names, from its own table of symbols
 *	GET  /last/pprof/...            the body that was served last; /last/pprof/symbol as above
 *
 * It prints its port. Build: g++ -O1 -rdynamic service.cc -ltcmalloc_and_profiler
 * or g++ -O1 -rdynamic -DJEMALLOC service.cc -ljemalloc
 */
#include <cxxabi.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#ifdef JEMALLOC
#include <jemalloc/jemalloc.h>
#else
#include <gperftools/heap-profiler.h>
#include <gperftools/malloc_extension.h>
#include <gperftools/profiler.h>
#endif

#define NOINLINE __attribute__((noinline))

namespace shop
{

volatile unsigned sink;

NOINLINE void rank_items(unsigned n)
{
	for (unsigned i = 0; i < 3 * n; i++)
		sink = sink * 1664525 + i;
}

NOINLINE void parse_orders(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink = sink ^ (i << 3);
}

NOINLINE void serve_requests()
{
	for (;;) {
		rank_items(100000);
		parse_orders(100000);
	}
}

struct Cache {
	std::vector<std::unique_ptr<char[]>> kept;

	NOINLINE void fill()
	{
		while (kept.size() < 2000) {
			kept.emplace_back(new char[16384]);
			kept.back()[0] = 1;
		}
	}
};

/* Allocates, and frees all of it again. */
NOINLINE void read_config()
{
	for (int i = 0; i < 1000; i++) {
		std::unique_ptr<char[]> block(new char[8192]);
		block[0] = 1;
		sink = sink + static_cast<unsigned>(block[0]);
	}
}

} // namespace shop

static std::mutex lock;
static std::map<std::string, std::string> last;

static std::string read_file(const std::string &path)
{
	std::ifstream in(path, std::ios::binary);
	std::stringstream all;

	all << in.rdbuf();
	unlink(path.c_str());
	return all.str();
}

#ifndef JEMALLOC
static double burned()
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/* So many seconds and, on a busy machine, until enough time was burned to be sampled. */
static void wait_burned(unsigned seconds)
{
	double enough = burned() + 1;

	std::this_thread::sleep_for(std::chrono::seconds(seconds));
	while (burned() < enough)
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
}
#endif

static std::string make_profile(const std::string &path, unsigned seconds)
{
	std::string file = "/tmp/epi-cpp-" + std::to_string(getpid()) + ".profile";

#ifdef JEMALLOC
	const char *name = file.c_str();

	(void)seconds;
	if (path != "/pprof/heap" || mallctl("prof.dump", nullptr, nullptr, &name, sizeof(name)))
		return "";
	return read_file(file);
#else
	std::string out;

	if (path == "/pprof/profile") {
		ProfilerStart(file.c_str());
		wait_burned(seconds);
		ProfilerStop();
		return read_file(file);
	}
	if (path == "/pprof/heap") {
		MallocExtension::instance()->GetHeapSample(&out);
		return out;
	}
	if (path == "/pprof/allocs") {
		char *text = GetHeapProfile();
		out = text;
		free(text);
	}
	return out;
#endif
}

static std::string name_of(unsigned long address)
{
	Dl_info info;
	int status;

	if (!dladdr(reinterpret_cast<void *>(address), &info) || !info.dli_sname)
		return "";
	char *plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
	std::string name = plain ? plain : info.dli_sname;
	free(plain);
	return name;
}

static std::string symbols(const std::string &question)
{
	std::string out = "num_symbols: 1\n";
	const char *at = question.c_str();

	while (*at) {
		char *end;
		unsigned long address = strtoul(at, &end, 16);
		std::string name = name_of(address);
		char hex[32];

		if (end == at)
			break;
		snprintf(hex, sizeof(hex), "0x%016lx\t", address);
		if (!name.empty())
			out += hex + name + "\n";
		at = *end ? end + 1 : end;
	}
	return out;
}

static std::string answer(
	const std::string &method, std::string path, unsigned seconds, const std::string &body)
{
	bool again = path.rfind("/last", 0) == 0;

	if (again)
		path = path.substr(5);
	if (path == "/pprof/symbol" || path == "/pprof/symbolz") /* pprof asks one or the other */
		return method == "POST" ? symbols(body) : "num_symbols: 1\n";
	std::lock_guard<std::mutex> guard(lock);
	if (!again)
		last[path] = make_profile(path, seconds);
	return last[path];
}

static void serve(int fd)
{
	std::string in, body;
	char piece[65536], method[8] = "", target[256] = "";
	size_t head, length = 0;
	ssize_t n;

	while ((head = in.find("\r\n\r\n")) == std::string::npos) {
		if ((n = recv(fd, piece, sizeof(piece), 0)) <= 0)
			break;
		in.append(piece, static_cast<size_t>(n));
	}
	if (head != std::string::npos && sscanf(in.c_str(), "%7s %255s", method, target) == 2) {
		size_t at = in.find("ontent-Length: ");

		if (at != std::string::npos && at < head)
			length = strtoul(in.c_str() + at + 15, nullptr, 10);
		while (in.size() < head + 4 + length && (n = recv(fd, piece, sizeof(piece), 0)) > 0)
			in.append(piece, static_cast<size_t>(n));
		std::string path = target, query;
		size_t mark = path.find('?');
		unsigned seconds = 1;
		if (mark != std::string::npos) {
			query = path.substr(mark);
			path = path.substr(0, mark);
			if ((at = query.find("seconds=")) != std::string::npos)
				seconds = static_cast<unsigned>(strtoul(query.c_str() + at + 8, nullptr, 10));
		}
		body = answer(method, path, seconds, in.substr(head + 4));
		std::string out = (body.empty() ? "HTTP/1.1 404 Not Found" : "HTTP/1.1 200 OK");
		out += "\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
			std::to_string(body.size()) + "\r\n\r\n" + body;
		for (size_t done = 0; done < out.size(); done += static_cast<size_t>(n))
			if ((n = send(fd, out.data() + done, out.size() - done, MSG_NOSIGNAL)) <= 0)
				break;
	}
	close(fd);
}

int main()
{
	struct sockaddr_in at = {};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	shop::Cache cache;

#ifndef JEMALLOC
	HeapProfilerStart("/dev/null");
#endif
	cache.fill();
	shop::read_config();
	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, reinterpret_cast<struct sockaddr *>(&at), sizeof(at)) ||
		listen(fd, 16) || getsockname(fd, reinterpret_cast<struct sockaddr *>(&at), &len))
		return 1;
	printf("127.0.0.1:%d\n", ntohs(at.sin_port));
	fflush(stdout);
	std::thread(shop::serve_requests).detach();
	for (;;) {
		int client = accept(fd, nullptr, nullptr);

		if (client >= 0)
			std::thread(serve, client).detach();
	}
}
