package cargo

import (
	"fmt"
	"strconv"
	"strings"
)

// maxAccounts is how much of /etc/passwd and /etc/group is read.
const maxAccounts = 1 << 20

// accounts are the users and groups of an image.
type accounts struct{ users, groups map[string][]string }

// take reads /etc/passwd or /etc/group; that of an upper layer replaces one below.
func (a *accounts) take(file string, text []byte) {
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) >= 3 && all[fields[0]] == nil {
			all[fields[0]] = fields
		}
	}
	if file == "passwd" {
		a.users = all
	} else {
		a.groups = all
	}
}

// find is what a user is, written as in an image's configuration: "", USER, USER:GROUP,
// by names or numbers. A user alone has the group that /etc/passwd says, or 0.
func (a *accounts) find(written string) (uid, gid uint32, err error) {
	if written == "" {
		return 0, 0, nil
	}
	user, group, both := strings.Cut(written, ":")
	entry := a.users[user]
	if uid, err = number(user); err != nil {
		if entry == nil {
			return 0, 0, fmt.Errorf("user %.80q: its /etc/passwd has none of that name; write its number: --user 1000:1000", user)
		}
		if uid, err = number(entry[2]); err != nil {
			return 0, 0, fmt.Errorf("user %.80q: its /etc/passwd has no number for it: %w", user, err)
		}
	}
	switch {
	case both:
		if gid, err = number(group); err == nil {
			return uid, gid, nil
		}
		entry := a.groups[group]
		if entry == nil {
			return 0, 0, fmt.Errorf("group %.80q: its /etc/group has none of that name; write its number: --user 1000:1000", group)
		}
		gid, err = number(entry[2])
	case len(entry) > 3:
		gid, err = number(entry[3])
	default:
		for _, e := range a.users {
			if len(e) > 3 && e[2] == user {
				gid, err = number(e[3])
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("the group of user %.80q: %w", written, err)
	}
	return uid, gid, err
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = fmt.Errorf("%d is nobody's number", n)
	}
	return uint32(n), err
}
