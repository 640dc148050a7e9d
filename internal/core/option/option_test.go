package option

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// sample has an option of every kind.
type sample struct {
	Words   []string
	Counts  []int
	Mode    string
	Rounds  int
	Wait    time.Duration
	Share   float64
	Really  bool
	Seed    uint64
	Limits  inner
	Parts   []inner
	Secret  string
	flagged string
}

type inner struct {
	Most  int `json:"most"`
	Least int `json:"least"`
}

func (i *inner) Declare(s *Set) {
	Int(s, &i.Most, "most", "the most", OrZero, Bounds(2, 9, "a bound"))
	Int(s, &i.Least, "least", "the least")
}

func defaults() sample {
	return sample{Counts: []int{1}, Mode: "fast", Rounds: 3, Wait: time.Minute, Limits: inner{Most: 5}}
}

func (o *sample) Declare(s *Set) {
	Time(s, &o.Wait, "wait", "how long", AtLeast(time.Second, "is too short", "2s"))
	List(s, &o.Words, "words", "some words", OmitEmpty, Once("say each once"))
	Var(s, &o.Counts, "counts", "how many", OneOrMore(Integer), Flag("counts", "c"), Some("write one"), AtMost(3), Bounds(1, 5, "a count"))
	Text(s, &o.Mode, "mode", "how", Choices("fast", "slow"))
	Int(s, &o.Rounds, "rounds", "how often", Bounds(1, 100, "a number of rounds"))
	Var(s, &o.Share, "share_of", "what part", Number, OmitEmpty, Bounds(0.5, 1.5, "a share"))
	Bool(s, &o.Really, "really", "whether", OmitEmpty)
	Var(s, &o.Seed, "seed", "of chance", Natural)
	Group(s, &o.Limits, "limits", "limits", Flag("limit"))
	Var(s, &o.Parts, "parts", "parts", ListOf(Fields("a part", inner{Least: 1})), OmitEmpty)
	Text(s, &o.Secret, "secret", "not in files", OmitEmpty, Refused("say it yourself"))
	Text(s, &o.flagged, "", "a flag only", Flag("only"))
}

func (o *sample) Wrong() FieldErrors {
	if o.Mode == "slow" && o.Rounds > 50 {
		return FieldErrors{Wrongf("rounds", "%d take too long when slow", o.Rounds)}
	}
	return nil
}

func (o sample) MarshalJSON() ([]byte, error)     { return Marshal(&o) }
func (o *sample) UnmarshalJSON(text []byte) error { return Unmarshal(text, o) }

func read(text string) (o sample, s *Set, err error) {
	o = defaults()
	err = Parse("f", []byte(text), func(n Node) { s = Read(n, "a sample", &o) })
	return o, s, err
}

func TestAFileIsReadStrictlyAndEveryMistakeHasItsPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rounds: 0":                        "f:1:9: rounds: 0 is not a number of rounds: from 1 to 100 are allowed",
		"rounds: '5'":                      `f:1:9: rounds: "5" is text: write a whole number, without quotes`,
		"rounds: 010":                      "f:1:9: rounds: 010 is not a whole number in decimal digits",
		"rounds: 99999999999999999999":     "f:1:9: rounds: 99999999999999999999 is too large",
		"seed: -1":                         "f:1:7: seed: -1 is below 0",
		"rounds:":                          "f:1:1: rounds has no value: write one, or leave the line out",
		"round: 5":                         `f:1:1: unknown field "round" in a sample: the fields are wait, words, counts, mode, rounds, share_of, really, seed, limits, parts`,
		"rounds: 5\nrounds: 6":             `f:2:1: "rounds" is there twice, first in line 1: keep one of them`,
		"wait: 5":                          `f:1:7: wait: "5" has no unit: write 5s for seconds, or another of ms, s, m, h`,
		"wait: 1ms":                        "f:1:7: wait: 1ms is too short: write 1s or more, such as 2s",
		"mode: best":                       `f:1:7: mode: "best" is not known: write fast or slow`,
		"mode: 5":                          "f:1:7: mode: 5 is not text: write text, in quotes if it looks like something else",
		"words: a":                         `f:1:8: words: "a" is not a list: write [a, b], or a line with - for each`,
		"words: [a, b, a]":                 "f:1:15: words: a is there twice: say each once",
		"counts: [1, 9]":                   "f:1:13: counts: 9 is not a count: from 1 to 5 are allowed",
		"counts: 9":                        "f:1:9: counts: 9 is not a count: from 1 to 5 are allowed",
		"counts: []":                       "f:1:9: counts: the list is empty: write one",
		"counts: [1, 2, 3, 4]":             "f:1:9: counts: 4 are too many: at most 3 are allowed",
		"share_of: nan":                    `f:1:11: share_of: "nan" is no number`,
		"share_of: 2":                      "f:1:11: share_of: 2 is not a share: from 0.5 to 1.5 are allowed",
		"really: yes":                      `f:1:9: really: "yes" is neither true nor false`,
		"limits: {most: 1}":                "f:1:16: limits.most: 1 is not a bound: from 2 to 9 are allowed",
		"limits: {more: 1}":                `f:1:10: unknown field "more" in limits: the fields are most, least`,
		"limits: 5":                        "f:1:9: limits is 5: write its fields below it, each as name: value; the fields are most, least",
		"parts: [{most: x}]":               `f:1:16: most: "x" is text: write a whole number, without quotes`,
		"secret: x":                        "f:1:9: secret: say it yourself",
		"mode: slow\nrounds: 60":           "f:2:9: rounds: 60 take too long when slow",
		"mode: slow\nwait: 1ms\nrounds: 0": "f:2:7: wait: 1ms is too short: write 1s or more, such as 2s\nf:3:9: rounds: 0 is not a number of rounds: from 1 to 100 are allowed",
		"rounds: &a 5":                     "f:1:9: plans do not use an anchor (&): write the value out where it is needed",
		"rounds: !!int 5":                  "f:1:9: plans do not use a tag (!): leave it out; text that begins with ! has to be quoted",
		"[1":                               "f:1:1: the plan is not YAML here",
		"":                                 "f:1:1: the plan is empty",
		"rounds: 5\n---\nrounds: 6":        "f:2:1: a second document begins here",
		"rounds: 5 # caf\xe9":              "f:1:16: the byte 0xe9 is not text",
		"rounds: 5 # \x00":                 "f:1:13: the byte 0x00 is not text",
		"rounds: 5\n" + strings.Repeat("#", 1<<20): "f:1:1: the plan is larger than 1 MiB",
		strings.Repeat("a: b\n", 100_000):          "f:6667:4: the plan has more than 20000 words",
		strings.Repeat("[", 100_000):               "f:1:33: lists are nested more than 32 deep",
		strings.Repeat("{a: ", 100_000):            "f:1:129: lists are nested more than 32 deep",
		strings.Repeat("- ", 100_000):              "f:1:65: lists are nested more than 32 deep",
		"- a":                                      "f:1:1: a sample is a list: write its fields below it",
	} {
		begin := time.Now()
		_, _, err := read(text)
		check.That(t, err != nil && strings.HasPrefix(err.Error(), want), "%.60q: got\n%.300v\nwant\n%s", text, err, want)
		d := time.Since(begin)
		check.That(t, d <= time.Minute, "%.60q took %v", text, d)
	}
}

func TestARecordHoldsOptionsInTheirOrder(t *testing.T) {
	t.Parallel()
	full, _, err := read("{words: [b], counts: 4, mode: slow, rounds: 7, wait: 1h30m, share_of: 0.5, really: true, seed: 18446744073709551615, limits: {least: 1}, parts: [{most: 3}]}")
	must.OK(t, err)
	for o, want := range map[*sample]string{
		&full: `{"wait":"1h30m","words":["b"],"counts":[4],"mode":"slow","rounds":7,"share_of":0.5,"really":true,"seed":18446744073709551615,"limits":{"most":5,"least":1},"parts":[{"most":3,"least":1}]}`,
		{}:    `{"wait":"0s","counts":[],"mode":"","rounds":0,"seed":0,"limits":{"most":0,"least":0}}`,
	} {
		text, err := json.Marshal(o)
		check.That(t, err == nil && string(text) == want, "%v\n%s\n%s", err, text, want)
		back := defaults() // of which nothing stays
		if err := json.Unmarshal(text, &back); err != nil || len(o.Counts) > 0 && !reflect.DeepEqual(back, *o) || back.Rounds != o.Rounds {
			t.Errorf("%v: %+v", err, back)
		}
	}
	check.Error(t, json.Unmarshal([]byte(`{"later":1,"rounds":"x"}`), new(sample)), "rounds: ")
}

func TestAFlagsMistakeNamesTheFlagAndAFilesItsPlace(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--rounds=x":                   `--rounds: "x" is not a whole number`,
		"--rounds=0":                   "--rounds: 0 is not a number of rounds: from 1 to 100 are allowed",
		"-c 1,9":                       "--counts: 9 is not a count: from 1 to 5 are allowed",
		"--limit most=1":               "--limit: 1 is not a bound: from 2 to 9 are allowed",
		"--limit most=3,most=4":        `--limit: "most" is there twice in "most=3,most=4": keep one of them`,
		"--limit more=3":               `--limit: unknown "more" in "more=3": write some of most, least, each with = and a value`,
		"--limit most=0":               "--limit: most=0 is none: leave it out, or write more",
		"--mode slow --rounds 60":      "--rounds: 60 take too long when slow",
		"--wait 1ms --share-of 9":      "--wait: 1ms is too short: write 1s or more, such as 2s\n--share-of: 9 is not a share: from 0.5 to 1.5 are allowed",
		"--rounds 5 --limit most=3":    "",
		"--secret x --only y --really": "",
	} {
		o := defaults()
		s := Of(&o)
		flags := pflag.NewFlagSet("sample", pflag.ContinueOnError)
		s.AddFlags(flags)
		err := flags.Parse(strings.Fields(args))
		if err == nil {
			err = s.Finish(context.Background())
		} else if wrong := new(FieldError); errors.As(err, &wrong) {
			err = wrong
		}
		check.That(t, (err == nil) == (want == "") && (err == nil || err.Error() == want), "%s: got\n%v\nwant\n%s", args, err, want)
	}
	// Over a file, each mistake is where its value came from.
	_, s, err := read("mode: slow\nrounds: 40\nwords: [a]")
	must.OK(t, err)
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	other := defaults()
	given := Collect(flags, Of(&other))
	must.OK(t, flags.Parse([]string{"--rounds=60", "--words=b", "--words=c,d", "--words=b", "--really"}))
	must.OK(t, given.Lay(s))
	err = s.Finish(context.Background())
	check.That(t, err != nil && err.Error() == "--rounds: 60 take too long when slow", "got %v", err)
	words := s.of.(*sample).Words
	check.That(t, strings.Join(words, " ") == "b c d", "words %q", words)
	names := strings.Join(given.Names(), " ")
	check.That(t, names == "words rounds really" && s.Given("really") && !s.Given("seed"), "given: %s", names)
	_, s, _ = read("mode: slow\nrounds: 40")
	s.of.(*sample).Rounds = 60
	err = s.Finish(context.Background())
	check.That(t, err != nil && err.Error() == "f:2:9: rounds: 60 take too long when slow", "got %v", err)
}

func TestTheSchemaSaysWhatCanBe(t *testing.T) {
	t.Parallel()
	o := defaults()
	text := must.Get(json.Marshal(Describe(Of(&o))))(t)
	for _, want := range []string{
		`"rounds":{"default":3,"description":"how often","maximum":100,"minimum":1,"type":"integer"}`,
		`"mode":{"default":"fast","description":"how","enum":["fast","slow"]}`,
		`"most":{"anyOf":[{"const":0},{"maximum":9,"minimum":2,"type":"integer"}]`,
		`"words":{"description":"some words","items":{"type":"string"},"type":"array","uniqueItems":true}`,
		`"counts":{"default":[1],"description":"how many","oneOf":[{"maximum":5,"minimum":1,"type":"integer"},{"items":{"maximum":5,"minimum":1,"type":"integer"},"maxItems":3,"minItems":1,"type":"array"}]}`,
		`"additionalProperties":false`,
	} {
		check.That(t, strings.Contains(string(text), want), "no %s in\n%s", want, text)
	}
	check.That(t, !strings.Contains(string(text), "secret") && !strings.Contains(string(text), `"only"`),
		"what no file can say is in the schema")
}

func TestDurationsAreWrittenWithoutZeroParts(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "60ms": 60 * time.Millisecond, "30s": 30 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second,
		"10m": 10 * time.Minute, "1h": time.Hour, "10h": 10 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "20m10s": 1210 * time.Second,
	} {
		got := FormatDuration(d)
		back, err := parseDuration(got)
		check.That(t, got == want && err == nil && back == d, "%v is written %q and read back as %v, %v", d, got, back, err)
	}
}
