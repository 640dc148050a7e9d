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

// guard stands before every page. It answers who reads only, asks for the host that was
// listened for, and knows the token.
type guard struct {
	next   http.Handler
	host   string // that may be asked for, beside addresses and localhost
	token  [sha256.Size]byte
	cookie string // its name: cookies do not tell ports apart
}

// NewToken is a token that nobody can guess.
func NewToken() string { return rand.Text() }

// own is what may be loaded by a page of ours: what this server has.
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
		// A name that leads here today may be a stranger's, whose page would then read ours.
		http.Error(w, "This address is not served by that name: use the one that tare serve printed.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Records are only read here.", http.StatusMethodNotAllowed)
	case r.URL.Path == "/" && given != "" && g.known(given):
		// Into a cookie, so that the address that stays in the history tells nothing.
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // not Secure: browsers would not send it back over HTTP
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case !g.admitted(r):
		http.Error(w, "A token is needed: open the address that tare serve printed, or send it as Authorization: Bearer TOKEN.", http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// asked tells whether a request was for this server: an address, since no name is in
// it that could be made to lead elsewhere, or a name that is known to be ours.
func (g *guard) asked(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, g.host)
}

// admitted tells who has the token: a browser in its cookie, a program in its header.
func (g *guard) admitted(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.known(token)
	}
	c, err := r.Cookie(g.cookie)
	return err == nil && g.known(c.Value)
}

// known compares sums, so that the time it takes tells neither text nor length.
func (g *guard) known(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
