package engine

import "sync"

// held are the things on engines that sessions of this process share, by key.
var held = struct {
	sync.Mutex
	by map[string]*holding
}{by: map[string]*holding{}}

type holding struct {
	users int
	made  bool
}

// Hold takes a share in something on an engine that several sessions use, such as the
// workload's image. The first holder calls make, which reports whether it made the thing or
// found it. The last one to let go calls remove if it was made. If make fails half way, it
// returns made with an error; then Hold returns letGo with the error. key names the thing and
// the engine.
func Hold(key string, make func() (made bool, err error)) (letGo func(remove func() error) error, err error) {
	held.Lock()
	defer held.Unlock()
	h := held.by[key]
	if h == nil {
		var made bool
		if made, err = make(); err != nil && !made {
			return nil, err
		}
		h = &holding{made: made}
		held.by[key] = h
	}
	h.users++
	var once bool
	return func(remove func() error) error {
		held.Lock()
		defer held.Unlock()
		if once {
			return nil
		}
		once = true
		if h.users--; h.users > 0 {
			return nil
		}
		delete(held.by, key)
		if !h.made {
			return nil
		}
		return remove()
	}, err
}

// Renew makes sure that a held thing still exists, since others may have removed it. make is
// as in [Hold]. A thing that was made again is removed by the last holder, even if it was
// found at first.
func Renew(key string, make func() (made bool, err error)) error {
	held.Lock()
	defer held.Unlock()
	made, err := make()
	if h := held.by[key]; h != nil {
		h.made = h.made || made
	}
	return err
}
