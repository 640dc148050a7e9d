package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard protects all pages. It accepts only read requests with a valid host and the token.
type guard struct {
	next   http.Handler
	host   string // host name that requests may use, in addition to IP addresses and localhost
	token  [sha256.Size]byte
	cookie string // name of the cookie; browsers send cookies to every port of a host
}

// NewToken returns a random token.
func NewToken() string { return rand.Text() }

// own is the content security policy of tare's pages: only this server's resources.
const own = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for key, value := range map[string]string{
		"Content-Security-Policy":      own,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		w.Header().Set(key, value)
	}
	given := r.URL.Query().Get("token")
	switch {
	case !g.asked(r.Host):
		// DNS rebinding: a foreign name may point here, and its page could then read ours.
		http.Error(w, "Unknown host name: use the address that tare serve printed.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Only GET and HEAD are allowed.", http.StatusMethodNotAllowed)
	case r.URL.Path == "/" && given != "" && g.known(given):
		// Use a cookie, so that the URL in the browser's history has no token.
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // not Secure: browsers would not send it back over HTTP
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case !g.admitted(r):
		http.Error(w, "A token is needed: open the address that tare serve printed, or send it as Authorization: Bearer TOKEN.", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// asked reports whether the host of a request is valid: an IP address, localhost or this
// server's name. IP addresses are safe against DNS rebinding.
func (g *guard) asked(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, g.host)
}

// admitted reports whether a request has the token, in a cookie or in a header.
func (g *guard) admitted(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.known(token)
	}
	c, err := r.Cookie(g.cookie)
	return err == nil && g.known(c.Value)
}

// known compares hashes, so that its timing leaks neither the token nor its length.
func (g *guard) known(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
