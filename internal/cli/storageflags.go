package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
)

// Package plan says what is wrong by the names that fields have in a plan file.
// On a command line they are flags, some of another name.

// flagNames are the flags of fields that are called otherwise.
var flagNames = map[string]string{
	"targets": "TARGET", "volumes": "--volume", "runtime_limit": "--runtime-limit", "programs": "--program",
	"i_know_this_destroys": "--i-know-this-destroys", "limits": "--limit",
	// Of programs.
	"duration": "--time", "keep_alive": "--keepalive", "instances": "--cpus", "names": "--name", "pins": "--pin", "cgroups": "--cgroup", "owners": "--owner",
}

// planField is a name of a plan's before what is wrong with it: "limits.cpu: ".
var planField = regexp.MustCompile(`^([a-z_]+)(?:\.[a-z_]+)?: `)

// flagged has every line begin with the flag that it is about; nil for nil.
func flagged(err error) error {
	if err == nil {
		return nil
	}
	var all []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if m := planField.FindStringSubmatch(line); m != nil {
			flag := flagNames[m[1]]
			if flag == "" {
				flag = "--" + m[1]
			}
			line = flag + ": " + line[len(m[0]):]
		}
		all = append(all, errors.New(line))
	}
	return errors.Join(all...)
}

// bare is what is wrong without the field's name, for a flag that says its own.
func bare(err error) string {
	return planField.ReplaceAllString(err.Error(), "")
}

// noLimit is the first of limits such as "cpu=0" that is none, "" where all are
// some.
func noLimit(text string, l subject.Limits) string {
	zero := map[string]bool{"cpu": l.CPU == 0, "memory": l.Memory == 0, "pids": l.Pids == 0, "cpu_shares": l.CPUShares == 0}
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(word, "=")
		if name = strings.TrimSpace(name); zero[name] {
			return fmt.Sprintf("%s=%s", name, strings.TrimSpace(value))
		}
	}
	return ""
}
