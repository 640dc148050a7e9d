package cli

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/serve"
)

func newServe(s *app) *cobra.Command {
	var port uint16
	var listen, tokenFile string
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show records to a browser: a list, their reports, two compared, runs under way",
		Long: `Show the records below a folder (default: where runs put them) to a browser: a list, the
report of each in every format, two of them compared, and how far a run under way is.
Nothing can be changed through it. Ctrl-C ends it.

It listens on 127.0.0.1 only, at a port that is free or at --port, and prints an address
with a token in it, which the browser keeps as a cookie: records are for their owner,
and every user of a machine can connect to its loopback addresses. From elsewhere:

  ssh -L 8080:127.0.0.1:8080 NODE tare serve --port 8080

With --listen it can be reached from other machines; the address that is printed lets
them in, or the token in --token-file. It speaks HTTP: what is read can be seen on the way,
and so can the token.`,
		Args: takes(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := s.serving(args)
			if err != nil {
				return err
			}
			o.Log, o.Confine = log.New(cleaned{s.Err}, "tare: ", 0), s.Own
			if o.Address, err = address(listen, port); err != nil {
				return err
			}
			if listen != "" && tokenFile == "" {
				fmt.Fprintln(s.Err, "the token below is all that keeps others out, and HTTP shows it, and the records, to everybody on the way")
			}
			query := ""
			if o.Token, query, err = token(tokenFile); err != nil {
				return err
			}
			return serve.Serve(c.Context(), o, func(at string) { fmt.Fprintf(s.Out, "%s%s\n", at, query) })
		},
	}
	f := c.Flags()
	f.Func("port", "`NUMBER` of the port to listen at (default: 0, any that is free)", func(text string) (err error) {
		port, err = portOf(text)
		return err
	})
	f.StringVar(&listen, "listen", "", "address to listen at for others, HOST or HOST:PORT (default: 127.0.0.1, which others cannot reach)")
	f.StringVar(&tokenFile, "token-file", "", "file with the token that is asked for, which only its owner can read (default: one by chance, printed once)")
	return c
}

// address is where to listen.
func address(listen string, port uint16) (string, error) {
	if listen == "" {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), nil
	}
	host, given, err := net.SplitHostPort(listen)
	if err != nil {
		return net.JoinHostPort(strings.Trim(listen, "[]"), strconv.Itoa(int(port))), nil
	}
	if port != 0 {
		return "", fmt.Errorf("--listen: %s has a port; leave out --port %d, or the port of --listen", listen, port)
	}
	if host == "" {
		return "", fmt.Errorf("--listen: %q has no address; write 0.0.0.0%[1]s for all of this machine's", listen)
	}
	if _, err := portOf(given); err != nil {
		return "", fmt.Errorf("--listen: %w, as in %s", err, net.JoinHostPort(host, "8080"))
	}
	return net.JoinHostPort(host, given), nil
}

func portOf(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no port: write a number from 1 to 65535, or 0 for any that is free", text)
	}
	return uint16(n), nil
}

// Bounds of a token: one by chance has 26 letters.
const (
	shortestToken = 16
	longestToken  = 4096
)

// token reads the token, or makes one, which query then tells.
func token(path string) (token, query string, err error) {
	if path == "" {
		token = serve.NewToken()
		return token, "?token=" + token, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", "", fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", "", fmt.Errorf("--token-file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", "", fmt.Errorf("--token-file: others can read %s; chmod 600 %s", path, path)
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != 0 && owner != os.Geteuid() {
		return "", "", fmt.Errorf("--token-file: %s belongs to uid %d, who knows the token; copy it, or chown it to yourself", path, owner)
	}
	text, err := io.ReadAll(io.LimitReader(f, longestToken))
	if err != nil {
		return "", "", fmt.Errorf("--token-file: %w", err)
	}
	token = strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) }) {
		return "", "", fmt.Errorf("--token-file: a token is one word of %d or more letters, digits and signs, as head -c 20 /dev/urandom | base32 prints", shortestToken)
	}
	return token, "", nil
}

// cleaned is a stream to a terminal for text that others had a part in.
type cleaned struct{ io.Writer }

func (c cleaned) Write(text []byte) (int, error) {
	_, err := fmt.Fprintln(c.Writer, cleanLines(strings.TrimSuffix(string(text), "\n")))
	return len(text), err
}
