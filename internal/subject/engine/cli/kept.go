package cli

import "sync"

// Kept keeps the first Most bytes written to it and discards the rest, so that writers neither
// block nor fail.
type Kept struct {
	Most int

	mu      sync.Mutex
	kept    []byte
	dropped bool
}

// Write implements io.Writer; it never fails.
func (k *Kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(len(p), k.Most-len(k.kept))
	k.kept, k.dropped = append(k.kept, p[:room]...), k.dropped || room < len(p)
	return len(p), nil
}

func (k *Kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.kept)
}
