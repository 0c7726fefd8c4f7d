#include "cmd/epitool/flame/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ESC "\033"
#define ENTER ESC "[?1049h" ESC "[?25l" ESC "[?7l" /* other screen, no cursor, no wrapping */
#define LEAVE ESC "[0m" ESC "[?7h" ESC "[?25h" ESC "[?1049l"
#define BRIEF_NS 50000000
#define INPUT_BYTES 256u
#define WIDTH_DEFAULT 80u
#define HEIGHT_DEFAULT 24u

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static struct {
	bool open;
	int in; /* standard input, or /dev/tty if that is no terminal */
	struct termios before;
	sigset_t mask; /* as it was; the signals come only while screen_wait waits */
} screen = { .in = -1 };

static volatile sig_atomic_t ended_by, resized;

static void flame_on_end(int sig)
{
	ended_by = sig;
}

static void flame_on_resize(int sig)
{
	resized = 1;
}

static void flame_catch_signals(void)
{
	struct sigaction end = { .sa_handler = flame_on_end },
					 resize = { .sa_handler = flame_on_resize };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		sigaddset(&blocked, ending[i]);
		sigaction(ending[i], &end, NULL);
	}
	sigaddset(&blocked, SIGWINCH);
	sigaction(SIGWINCH, &resize, NULL);
	sigprocmask(SIG_BLOCK, &blocked, &screen.mask);
}

static enum err_code flame_put(const char *text, size_t n, struct err *err)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_errno(err, errno, "terminal");
		text += done;
		n -= (size_t)done;
	}
	return ERR_OK;
}

enum err_code screen_open(struct err *err)
{
	struct termios raw;
	enum err_code rc;

	if (!isatty(STDOUT_FILENO))
		return err_set(err, ERR_UNSUPPORTED, "standard output is no terminal");
	screen.in = isatty(STDIN_FILENO) ? STDIN_FILENO : open("/dev/tty", O_RDWR | O_CLOEXEC);
	if (screen.in < 0 || tcgetattr(screen.in, &screen.before))
		return err_set(err, ERR_UNSUPPORTED, "no terminal to read keys from");
	flame_catch_signals();
	raw = screen.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE; /* only Ctrl-C stays a signal */
	if (tcsetattr(screen.in, TCSAFLUSH, &raw))
		return err_errno(err, errno, "terminal");
	screen.open = true;
	atexit(screen_close);
	if ((rc = flame_put(ENTER, sizeof(ENTER) - 1, err)))
		screen_close();
	return rc;
}

void screen_close(void)
{
	struct err err;

	if (!screen.open)
		return;
	screen.open = false;
	if (flame_put(LEAVE, sizeof(LEAVE) - 1, &err)) {
		/* the terminal is gone */
	}
	tcsetattr(screen.in, TCSAFLUSH, &screen.before);
	sigprocmask(SIG_SETMASK, &screen.mask, NULL);
	if (screen.in != STDIN_FILENO)
		close(screen.in);
}

void screen_size(uint32_t *width, uint32_t *height)
{
	struct winsize w;

	*width = WIDTH_DEFAULT;
	*height = HEIGHT_DEFAULT;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return;
	*width = w.ws_col ? w.ws_col : *width;
	*height = w.ws_row ? w.ws_row : *height;
}

enum err_code screen_show(struct str drawn, struct err *err)
{
	return flame_put(drawn.ptr, drawn.len, err);
}

enum screen_event screen_wait(bool brief, struct buf *input)
{
	const struct timespec moment = { .tv_nsec = BRIEF_NS };
	struct pollfd p = { .fd = screen.in, .events = POLLIN };
	ssize_t n;
	int ready;

	if (!buf_reserve(input, INPUT_BYTES))
		return SCREEN_END;
	ready = ended_by || resized ? -1 : ppoll(&p, 1, brief ? &moment : NULL, &screen.mask);
	if (ended_by)
		return SCREEN_END;
	if (resized) {
		resized = 0;
		return SCREEN_RESIZED;
	}
	if (ready == 0)
		return SCREEN_PAUSE;
	n = ready < 0 ? -1 : read(screen.in, input->ptr + input->len, INPUT_BYTES);
	if (n <= 0)
		return ready < 0 && errno == EINTR ? SCREEN_PAUSE : SCREEN_END;
	input->len += (size_t)n;
	return SCREEN_INPUT;
}

int screen_signal(void)
{
	return ended_by;
}
