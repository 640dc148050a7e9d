package starts

import "slices"

// recent is a map that retains only the most recently added keys.
type recent[K comparable, V any] struct {
	m    map[K]V
	ring []K
	next int
	most int
}

func newRecent[K comparable, V any](most int) recent[K, V] {
	return recent[K, V]{m: map[K]V{}, most: most}
}

// put stores a value. It evicts the oldest key if the map is full.
func (r *recent[K, V]) put(k K, v V) {
	if _, ok := r.m[k]; ok {
		r.m[k] = v
		return
	}
	if len(r.ring) < r.most {
		r.ring = append(r.ring, k)
	} else {
		delete(r.m, r.ring[r.next])
		r.ring[r.next] = k
		r.next = (r.next + 1) % r.most
	}
	r.m[k] = v
}

// maxWords is the maximum number of interned texts. maxText is their maximum length in
// bytes.
const (
	maxWords = 4096
	maxText  = 200
	maxID    = 256
	maxWhy   = 1000
)

// words interns repeated texts.
type words map[string]string

// keep returns b as an interned string of at most maxText bytes.
func (w words) keep(b []byte) string {
	b = cut(b)
	if s, ok := w[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(w) < maxWords {
		w[s] = s
	}
	return s
}

// cut truncates b to at most maxText bytes, at a character boundary.
func cut(b []byte) []byte {
	if len(b) <= maxText {
		return b
	}
	n := maxText
	for n > maxText-4 && b[n]&0xC0 == 0x80 {
		n--
	}
	return b[:n]
}

// isID reports whether a text can be the id of a sandbox or a container: at most maxID
// characters that engines accept in names.
func isID(b []byte) bool {
	return len(b) > 0 && len(b) <= maxID && !slices.ContainsFunc(b, func(c byte) bool { return !idByte[c] })
}

var idByte = func() (ok [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@+") {
		ok[c] = true
	}
	return ok
}()
