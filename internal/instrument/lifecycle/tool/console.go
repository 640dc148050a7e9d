package tool

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

var (
	benchmarked = transcript.NewForm("Benchmark ", `^Benchmark #?\d+: (.{1,1000})$`)
	meanTime    = transcript.NewForm("Time (", `^Time \((?:mean|abs) [^)]{1,9}\): +([\d.]{1,20}) ([µnm]?s|us)\b`)
	timeRange   = transcript.NewForm("Range (", `^Range \(min [^)]{1,9} max\): .* (\d{1,9}) runs?$`)

	typed     = transcript.NewForm("time", `(?:^|[$#%>;&|(+]\s*|\b(?:do|sudo)\s+)time\s+(?:-\w+ )*(.{1,1000}?)(?:; ?done)?$`)
	loop      = transcript.NewForm("", `\b(?:for|while|until|repeat|do)\b`)
	loads     = transcript.NewForm("", `\b(?:dd|fio|sysbench|fortio|hyperfine)\b`) // they print their own results
	others    = []transcript.Form{transcript.NewForm("user", `^user\s+[\dm.,]+s?$`), transcript.NewForm("sys", `^sys\s+[\dm.,]+s?$`)}
	realTimes = []transcript.Form{
		transcript.NewForm("real", `^()real\s+(?:(\d{1,9})m)?(\d{1,12}[.,]?\d{0,9})s?$`),                                                             // bash, POSIX
		transcript.NewForm(" total", `^(.{0,1000}?)\s+[\d.]{1,20}s user [\d.]{1,20}s system \d{1,4}% cpu (?:(\d{1,9}):)?(\d{1,12}\.\d{1,9}) total$`), // zsh
		transcript.NewForm("elapsed", `()[\d.]system (?:(\d{1,9}):)(\d{1,12}\.\d{1,9})elapsed \d{1,9}%CPU\b`),                                        // GNU time
	}
)

// findAny returns the match of the first form that matches the line.
func findAny(forms []transcript.Form, line string) (m []string) {
	for i := range forms {
		if m = forms[i].Find(line); m != nil {
			break
		}
	}
	return m
}

// hyperfineText parses hyperfine's text output and its Markdown table. Both have only
// means, and the table lacks the number of runs.
func hyperfineText(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "hyperfine", "hyperfine's text and table do not count failed runs, and the table has no number of runs"
	at := hyperfined("", 0)
	unit := "" // of the table column
	take := func(mean, unit string, count int64) {
		v, err := strconv.ParseFloat(mean, 64)
		b, wrong := single(v * Units[unit])
		if err = cmp.Or(err, wrong); err == nil {
			at.batches = []record.Batch{several(record.Summary{Count: count, Mean: b.Samples[0].Returned - 1})}
		}
		f.take(at, err)
	}
	for i, l := range text.Lines {
		if m := benchmarked.Find(l.Text); m != nil {
			at = hyperfined(m[1], l.Number)
		} else if m := meanTime.Find(l.Text); m != nil && at.line != 0 {
			runs := int64(1) // hyperfine prints no range for a single run
			if i+1 < len(text.Lines) {
				if m := timeRange.Find(text.Lines[i+1].Text); m != nil {
					runs, _ = strconv.ParseInt(m[1], 10, 64) // at most nine digits
				}
			}
			take(m[1], m[2], runs)
			at.line = 0
		}
		if !strings.HasPrefix(l.Text, "|") {
			unit = ""
			continue
		}
		cells := append(strings.Split(strings.ReplaceAll(l.Text, `\|`, "\x00"), "|"), "", "")
		if mean, ok := strings.CutPrefix(strings.TrimSpace(cells[2]), "Mean ["); ok && strings.TrimSpace(cells[1]) == "Command" {
			unit = strings.TrimSuffix(mean, "]")
		} else if mean, _, _ := strings.Cut(strings.TrimSpace(cells[2]), " "); unit != "" && !strings.HasPrefix(mean, ":") && !strings.HasPrefix(mean, "-") {
			at = hyperfined(strings.ReplaceAll(strings.Trim(cells[1], " `"), "\x00", "|"), l.Number)
			take(mean, unit, 1)
			at.line = 0
		}
	}
	return f
}

// times parses the output of the shell's time. Times of the same command are rounds. So
// are consecutive times without a command. A command in a loop has several times.
func times(text *transcript.Stream) (f found) {
	f.tool, f.unknowable = "time", "time prints no exit status"
	command, looped, end := "", false, -1
	for i, l := range text.Lines {
		if findAny(others, l.Text) != nil {
			end = max(end, i*min(1, len(f.outputs)))
			continue
		}
		m := findAny(realTimes, l.Text)
		if m == nil {
			if m := typed.Find(l.Text[:min(len(l.Text), 2000)]); m != nil {
				command, looped = m[1], loop.Find(l.Text) != nil
			}
			continue
		}
		minutes, _ := strconv.ParseFloat(m[2], 64) // "" or at most nine digits
		s, err := strconv.ParseFloat(strings.Replace(m[3], ",", ".", 1), 64)
		b, wrong := single((minutes*60 + s) * 1e9)
		err = cmp.Or(err, wrong)
		command = cmp.Or(m[1], command)
		if loads.Find(command) != nil {
			f.left, command = append(f.left, command), ""
			continue
		}
		key := command
		if command == "" && (len(f.outputs) == 0 || end != i-1) {
			key = fmt.Sprint("line ", l.Number)
		} else if command == "" {
			key = f.outputs[len(f.outputs)-1].name
		}
		o := output{line: l.Number, name: key, command: command, op: setting.Run, lanes: 1, means: "the command exited, as time has it", batches: []record.Batch{b}}
		if end = i; !looped {
			command = ""
		}
		f.round(key, o, err)
	}
	return f
}
