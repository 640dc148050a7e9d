package cargo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxAccounts limits the size of /etc/passwd and /etc/group.
const maxAccounts = 1 << 20

// accounts are the users and groups of an image: the fields of each line in the order
// of the file. The first match counts.
type accounts struct{ users, groups [][]string }

// take parses /etc/passwd or /etc/group. The file of an upper layer replaces one below.
func (a *accounts) take(file string, text []byte) {
	var all [][]string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) >= 3 {
			all = append(all, fields)
		}
	}
	if file == "passwd" {
		a.users = all
	} else {
		a.groups = all
	}
}

// The fields of both files used for lookups.
const (
	byName   = 0
	byNumber = 2
)

// with returns the first account with a field value, or nil.
func with(all [][]string, field int, is string) []string {
	if i := slices.IndexFunc(all, func(fields []string) bool { return fields[field] == is }); i >= 0 {
		return all[i]
	}
	return nil
}

// find resolves a user in the notation of an image's configuration: "", USER or
// USER:GROUP, by names or numbers. A user without a group has that of /etc/passwd, or
// 0.
func (a *accounts) find(written string) (uid, gid uint32, err error) {
	if written == "" {
		return 0, 0, nil
	}
	user, group, both := strings.Cut(written, ":")
	its := with(a.users, byName, user)
	if uid, err = number(user); err != nil {
		if its == nil {
			return 0, 0, fmt.Errorf("user %.80q: not in the image's /etc/passwd; give its number: --user 1000:1000", user)
		}
		if uid, err = number(its[byNumber]); err != nil {
			return 0, 0, fmt.Errorf("user %.80q: invalid number in the image's /etc/passwd: %w", user, err)
		}
	} else if its == nil {
		its = with(a.users, byNumber, user)
	}
	switch {
	case both:
		if gid, err = number(group); err == nil {
			return uid, gid, nil
		}
		named := with(a.groups, byName, group)
		if named == nil {
			return 0, 0, fmt.Errorf("group %.80q: not in the image's /etc/group; give its number: --user 1000:1000", group)
		}
		gid, err = number(named[byNumber])
	case len(its) > 3:
		gid, err = number(its[3])
	}
	if err != nil {
		err = fmt.Errorf("the group of user %.80q: %w", written, err)
	}
	return uid, gid, err
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = fmt.Errorf("%d is not a valid id", n)
	}
	return uint32(n), err
}
