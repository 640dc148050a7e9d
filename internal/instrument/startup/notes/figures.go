package notes

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	verbs  = `create|state|start|run|kill|delete|exec|pause|resume|restore`
	figure = `(\d{1,9}(?:[.,]\d{1,9})?)`
	units  = `(seconds?|secs?|sec|msec|ms|µs|μs|usec|us|s)`
)

var (
	// partForm is one figure of a sequence: "kata-runtime create -> 1.7s", "docker
	// 0.39s", "state → 9 ms". The arrow, where there is one, stands before the
	// figure or after the part.
	partForm = regexp.MustCompile(`(?:^|[^\w.])([A-Za-z][\w.+-]{0,63}?)(?:[ \t]+(` + verbs + `))?(?:\(\))?(?:[ \t]*(?:-+>|=+>|→|⇒|:|=)[ \t]*|[ \t]+(?:(?:took|takes)[ \t]+)?)` + figure + `[ \t]?` + units + `(?:[^\w]|$)`)
	// between is what may stand between two parts.
	between = regexp.MustCompile(`^(?:[\s,;|+*•]|-+>|=+>|→|⇒|-[ \t]|then\b|and\b)*$`)
	isVerb  = regexp.MustCompile(`^(?:` + verbs + `)$`)

	sumForm = regexp.MustCompile(`(?i)^\W{0,8}(?:sum|total)\W{0,4}?\s*[:=]\s*` + figure + `\s*` + units + `?(?:\s|$|[.,;])`)

	bashReal  = regexp.MustCompile(`(?:^|\s)real\s+(?:(\d{1,4})h)?(\d{1,6})m(\d{1,2}[.,]\d{1,9})s`)
	posixReal = regexp.MustCompile(`^real\s+(\d{1,9}[.,]\d{1,9})(?:\s|$)`)
	zshTotal  = regexp.MustCompile(`\bsystem\s+\d{1,6}(?:[.,]\d{1,3})?%\s+cpu\s+(?:(\d{1,4}):)?(?:(\d{1,2}):)?(\d{1,9}[.,]\d{1,9})\s+total`)
	gnuTotal  = regexp.MustCompile(`system\s+(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2}(?:[.,]\d{1,9})?)elapsed\b`)

	creditsForm = regexp.MustCompile(`(?i)\bcredits?\b[^:=]{0,80}[:=]\s*` + figure + `\s*` + units + `?(?:\s*[-+−–]\s*\d{1,9}(?:[.,]\d{1,9})?\s*` + units + `?)+\s*=\s*` + figure + `\s*` + units + `?`)

	timed  = regexp.MustCompile(`(?:^|[$#%>❯]\s{0,4})time\s+(?:-p\s+)?(\S.*)$`)
	fullID = regexp.MustCompile(`\s+([0-9a-f]{64})$`)
)

// reserved are words before figures that are not the engine's time.
var reserved = map[string]bool{
	"sum": true, "total": true, "real": true, "user": true, "sys": true, "system": true, "cpu": true, "elapsed": true,
	"wall": true, "average": true, "avg": true, "mean": true, "median": true, "almost": true, "about": true, "around": true,
	"costs": true, "took": true, "takes": true, "is": true, "of": true, "or": true, "to": true, "at": true, "in": true, "for": true,
}

// mayHaveParts says whether a line is worth a closer look. Most lines of logs are
// not, and cost nothing.
func mayHaveParts(text string, goesOn bool) bool {
	switch {
	case strings.HasPrefix(text, "time=") || strings.Contains(text, " level=") || !strings.ContainsAny(text, "0123456789"):
		return false
	case goesOn || strings.Contains(text, "->") || strings.Contains(text, "=>") || strings.Contains(text, "→") || strings.Contains(text, "⇒"):
		return true
	}
	for _, verb := range strings.Split(verbs, "|") {
		if strings.Contains(text, verb) {
			return true
		}
	}
	return false
}

// partsOf finds the parts of a sequence in a line: those that follow each other
// with nothing but arrows in between. before is what stands before them, and open
// says that nothing comes after, so the next line may go on with it.
func partsOf(text string) (found []part, before string, open bool) {
	end := 0
	for rest := text; ; rest = text[end:] {
		m := partForm.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		skipped := rest[:m[2]]
		p, ok := partOf(rest, m)
		switch {
		case len(found) == 0 && !ok:
		case len(found) == 0:
			before = strings.TrimSpace(text[:end+m[2]])
			if between.MatchString(before) {
				before = ""
			}
			found = append(found, p)
		case !ok || !between.MatchString(skipped):
			return found, before, false
		default:
			found = append(found, p)
		}
		end += m[9]
	}
	return found, before, len(found) > 0 && between.MatchString(text[end:])
}

// partOf makes a part of a match of partForm.
func partOf(text string, m []int) (part, bool) {
	name := text[m[2]:m[3]]
	took, ok := duration(text[m[6]:m[7]], text[m[8]:m[9]])
	if !ok || reserved[strings.ToLower(name)] {
		return part{}, false
	}
	if m[4] >= 0 {
		return part{name: name + " " + text[m[4]:m[5]], call: true, took: took}, true
	}
	return part{name: name, call: isVerb.MatchString(name), took: took}, true
}

// titleOf is what a start is called: what stands before its figures on the same
// line, or the line above if it is short and no figure, command or log itself.
func titleOf(before, above string) string {
	for _, text := range []string{before, above} {
		title := strings.TrimSpace(strings.Trim(text, "#*_-=: \t`"))
		if text == before && !strings.HasSuffix(text, ":") {
			continue
		}
		if title != "" && len(title) <= maxTitle && !strings.Contains(title, "time=") && !strings.Contains(title, "->") && !timed.MatchString(title) {
			if _, ok := wallOf(title); !ok {
				return title
			}
		}
	}
	return ""
}

// duration reads a figure and its unit; none is seconds. Figures are of people, so
// a day is the most.
func duration(number, unit string) (int64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", "."), 64)
	if err != nil {
		return 0, false
	}
	scale := float64(time.Second)
	switch unit {
	case "ms", "msec":
		scale = float64(time.Millisecond)
	case "us", "µs", "μs", "usec":
		scale = float64(time.Microsecond)
	}
	v *= scale
	if v > 24*float64(time.Hour) {
		return 0, false
	}
	return int64(math.Round(v)), true
}

// wallOf reads the wall time as bash, zsh, POSIX' time -p and GNU's time write it.
func wallOf(text string) (int64, bool) {
	for _, form := range []*regexp.Regexp{bashReal, zshTotal, gnuTotal} {
		if m := form.FindStringSubmatch(text); m != nil {
			return clock(m[1:])
		}
	}
	if m := posixReal.FindStringSubmatch(text); m != nil {
		return duration(m[1], "s")
	}
	return 0, false
}

// clock adds up hours, minutes and seconds. Where the minutes are missing the
// first is theirs: "1:02.776".
func clock(parts []string) (int64, bool) {
	hours, minutes, seconds := parts[0], parts[1], parts[2]
	if minutes == "" {
		hours, minutes = "", hours
	}
	total := int64(0)
	for _, p := range []struct {
		text string
		unit time.Duration
	}{{hours, time.Hour}, {minutes, time.Minute}} {
		if p.text != "" {
			n, err := strconv.ParseInt(p.text, 10, 32)
			if err != nil {
				return 0, false
			}
			total += n * int64(p.unit)
		}
	}
	s, ok := duration(seconds, "s")
	if total += s; total > int64(24*time.Hour) {
		return 0, false
	}
	return total, ok
}

// commandOf reads the command that was timed, and the id that it printed, which
// pages put on the same line.
func commandOf(text string) (command, id string, ok bool) {
	m := timed.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	command = m[1]
	if at := fullID.FindStringSubmatch(command); at != nil {
		id = at[1]
		command = strings.TrimSuffix(command, at[0])
	}
	if len(command) > 1024 {
		return "", "", false
	}
	return command, id, true
}

// sumOf reads "sum: 2.137s".
func sumOf(text string) (int64, bool) {
	m := sumForm.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	return duration(m[1], m[2])
}

// creditsOf reads "credits to docker: 2.370 - 2.047 + 0.35 = 0.673s": the wall time
// that was used, and what came out.
func creditsOf(text string) (wall, credits int64, ok bool) {
	m := creditsForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	wall, ok = duration(m[1], m[2])
	credits, also := duration(m[4], m[5])
	return wall, credits, ok && also
}
