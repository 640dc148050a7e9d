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
		Short: "Serve records to a browser: a list, reports, comparisons and active runs",
		Long: `Serve the records below a folder (default: the one where runs store them) to a browser: a
list, the report of each record in every format, comparisons of two records, and the
progress of active runs. Access is read-only. Ctrl-C ends it.

tare listens only on 127.0.0.1, at a free port or at --port. It prints an address with a
token, which the browser stores as a cookie: records are private to their owner, but every
user of a machine can connect to its loopback addresses. From elsewhere:

  ssh -L 8080:127.0.0.1:8080 NODE tare serve --port 8080

With --listen other machines can connect. They need the token in the printed address or in
--token-file. Traffic is plain HTTP: anyone on the network path can read the records and
the token.`,
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
				fmt.Fprintln(s.Err, "the token below is the only protection, and anyone on the network path can read it and the records, since traffic is plain HTTP")
			}
			query := ""
			if o.Token, query, err = token(tokenFile); err != nil {
				return err
			}
			return serve.Serve(c.Context(), o, func(at string) { fmt.Fprintf(s.Out, "%s%s\n", at, query) })
		},
	}
	f := c.Flags()
	f.Func("port", "`NUMBER` of the port to listen on (default: 0, any free port)", func(text string) (err error) {
		port, err = portOf(text)
		return err
	})
	f.StringVar(&listen, "listen", "", "address to listen on for other machines, HOST or HOST:PORT (default: 127.0.0.1, local only)")
	f.StringVar(&tokenFile, "token-file", "", "file with the access token, readable only by its owner (default: a random token, printed once)")
	return c
}

// address returns the address to listen on.
func address(listen string, port uint16) (string, error) {
	if listen == "" {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), nil
	}
	host, given, err := net.SplitHostPort(listen)
	if err != nil {
		return net.JoinHostPort(strings.Trim(listen, "[]"), strconv.Itoa(int(port))), nil
	}
	if port != 0 {
		return "", fmt.Errorf("--listen: %s has a port; omit --port %d, or the port in --listen", listen, port)
	}
	if host == "" {
		return "", fmt.Errorf("--listen: %q has no address; write 0.0.0.0%[1]s for all addresses of this machine", listen)
	}
	if _, err := portOf(given); err != nil {
		return "", fmt.Errorf("--listen: %w, as in %s", err, net.JoinHostPort(host, "8080"))
	}
	return net.JoinHostPort(host, given), nil
}

func portOf(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("invalid port %q: write a number from 1 to 65535, or 0 for any free port", text)
	}
	return uint16(n), nil
}

// Length limits of a token. Random tokens have 26 letters.
const (
	shortestToken = 16
	longestToken  = 4096
)

// token reads the token from a file, or generates one. query contains a generated token.
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
		return "", "", fmt.Errorf("--token-file: %s is owned by uid %d, who can read the token; copy it, or chown it to yourself", path, owner)
	}
	text, err := io.ReadAll(io.LimitReader(f, longestToken))
	if err != nil {
		return "", "", fmt.Errorf("--token-file: %w", err)
	}
	token = strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) }) {
		return "", "", fmt.Errorf("--token-file: a token is one word of at least %d letters, digits and symbols, such as from head -c 20 /dev/urandom | base32", shortestToken)
	}
	return token, "", nil
}

// cleaned is a writer that escapes untrusted text for a terminal.
type cleaned struct{ io.Writer }

func (c cleaned) Write(text []byte) (int, error) {
	_, err := fmt.Fprintln(c.Writer, cleanLines(strings.TrimSuffix(string(text), "\n")))
	return len(text), err
}
