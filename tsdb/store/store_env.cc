/*
 * LevelDB's files, with tables read by pread instead of mapped. Mapped pages count as our memory
 * while the kernel keeps them (a compaction maps all its tables), and if the disk fails under a
 * mapping a signal ends the process, while a read returns an error.
 */
extern "C" {
#include "tsdb/store/store.h"
}

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <leveldb/env.h>

/* LevelDB's C interface hands an Env over in this. */
struct leveldb_env_t {
	leveldb::Env *rep;
	bool is_default;
};

namespace
{

leveldb::Status store_env_failed(const std::string &path)
{
	return errno == ENOENT ? leveldb::Status::NotFound(path, strerror(errno)) :
							 leveldb::Status::IOError(path, strerror(errno));
}

class read_file final : public leveldb::RandomAccessFile
{
  public:
	read_file(int fd, const std::string &path) : fd_(fd), path_(path) {}
	read_file(const read_file &) = delete;
	read_file &operator=(const read_file &) = delete;
	~read_file() override { close(fd_); }

	/* Fewer bytes than asked for: the file ends. */
	leveldb::Status Read(
		uint64_t offset, size_t n, leveldb::Slice *result, char *scratch) const override
	{
		size_t done = 0;
		ssize_t got = 0;

		while (done < n) {
			got = pread(fd_, scratch + done, n - done, (off_t)(offset + done));
			if (got == 0 || (got < 0 && errno != EINTR))
				break;
			done += got > 0 ? (size_t)got : 0;
		}
		*result = leveldb::Slice(scratch, done);
		return got < 0 && done < n ? store_env_failed(path_) : leveldb::Status::OK();
	}

  private:
	const int fd_;
	const std::string path_;
};

class read_env final : public leveldb::EnvWrapper
{
  public:
	read_env() : leveldb::EnvWrapper(leveldb::Env::Default()) {}

	leveldb::Status NewRandomAccessFile(
		const std::string &path, leveldb::RandomAccessFile **out) override
	{
		int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);

		*out = nullptr;
		if (fd < 0)
			return store_env_failed(path);
		*out = new read_file(fd, path);
		return leveldb::Status::OK();
	}
};

} // namespace

/*
 * For the life of the process, and never destroyed: it is made at the first opening, so handlers of
 * exit() that were registered before would find it gone, and they may close a store.
 */
extern "C" void *store_env(void)
{
	static leveldb_env_t handle = { new read_env, true };

	return &handle;
}
