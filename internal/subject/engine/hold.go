package engine

import "sync"

// held are the things on engines that sessions of this process share.
var held = struct {
	sync.Mutex
	by map[string]*holding
}{by: map[string]*holding{}}

type holding struct {
	users int
	made  bool
}

// Hold takes part in a thing on an engine that several sessions share, such as
// the workload's image. The first one to hold it calls make, which tells
// whether it made the thing or found it there. The last one to let go of it
// calls remove, if it was made; so does one for whom making it went wrong half way,
// whom letGo is given beside the error. key names thing and engine.
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

// Renew makes sure that what is held under key is still there, since others may
// have removed it. make is as that of [Hold]: what had to be made again is
// removed by the last to let go, though it was found there at first.
func Renew(key string, make func() (made bool, err error)) error {
	held.Lock()
	defer held.Unlock()
	made, err := make()
	if h := held.by[key]; h != nil {
		h.made = h.made || made
	}
	return err
}
