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
	"github.com/tare-bench/tare/internal/testing/golden"
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

func TestFileErrorsHavePositions(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/mistakes.txt", func(_ *testing.T, text string) (any, error) {
		_, _, err := read(text)
		return nil, err
	})
	for text, want := range map[string]string{
		"rounds: 5\n" + strings.Repeat("#", 1<<20): "f:1:1: the plan is larger than 1 MiB",
		strings.Repeat("a: b\n", 100_000):          "f:6667:4: the plan has more than 20000 words",
		strings.Repeat("[", 100_000):               "f:1:33: lists are nested more than 32 deep",
		strings.Repeat("{a: ", 100_000):            "f:1:129: lists are nested more than 32 deep",
		strings.Repeat("- ", 100_000):              "f:1:65: lists are nested more than 32 deep",
	} {
		begin := time.Now()
		_, _, err := read(text)
		check.That(t, err != nil && strings.HasPrefix(err.Error(), want), "%.60q: got\n%.300v\nwant\n%s", text, err, want)
		d := time.Since(begin)
		check.That(t, d <= time.Minute, "%.60q: took %v", text, d)
	}
}

func TestRecordHasOptionsInOrder(t *testing.T) {
	t.Parallel()
	full, _, err := read("{words: [b], counts: 4, mode: slow, rounds: 7, wait: 1h30m, share_of: 0.5, really: true, seed: 18446744073709551615, limits: {least: 1}, parts: [{most: 3}]}")
	must.OK(t, err)
	for o, want := range map[*sample]string{
		&full: `{"wait":"1h30m","words":["b"],"counts":[4],"mode":"slow","rounds":7,"share_of":0.5,"really":true,"seed":18446744073709551615,"limits":{"most":5,"least":1},"parts":[{"most":3,"least":1}]}`,
		{}:    `{"wait":"0s","counts":[],"mode":"","rounds":0,"seed":0,"limits":{"most":0,"least":0}}`,
	} {
		text, err := json.Marshal(o)
		check.That(t, err == nil && string(text) == want, "%v\n%s\n%s", err, text, want)
		back := defaults() // all are overwritten
		err = json.Unmarshal(text, &back)
		check.That(t, err == nil && (len(o.Counts) == 0 || reflect.DeepEqual(back, *o)) && back.Rounds == o.Rounds, "%v: %+v", err, back)
	}
	check.Error(t, json.Unmarshal([]byte(`{"later":1,"rounds":"x"}`), new(sample)), "rounds: ")
}

func TestErrorsNameTheFlagOrFilePosition(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/flags.txt", func(_ *testing.T, args string) (any, error) {
		o := defaults()
		s := Of(&o)
		flags := pflag.NewFlagSet("sample", pflag.ContinueOnError)
		s.AddFlags(flags)
		err := flags.Parse(strings.Fields(args))
		if err == nil {
			return nil, s.Finish(context.Background())
		}
		if wrong := new(FieldError); errors.As(err, &wrong) {
			err = wrong
		}
		return nil, err
	})
	// A flag overrides the file. Each error has the position of its value.
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

func TestSchemaHasTheRules(t *testing.T) {
	t.Parallel()
	o := defaults()
	text := must.JSON(t, Describe(Of(&o)))
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
		"the schema has a flag that files cannot set")
}

func TestDurationsAreFormattedWithoutZeroParts(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "60ms": 60 * time.Millisecond, "30s": 30 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second,
		"10m": 10 * time.Minute, "1h": time.Hour, "10h": 10 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "20m10s": 1210 * time.Second,
	} {
		got := FormatDuration(d)
		back, err := parseDuration(got)
		check.That(t, got == want && err == nil && back == d, "%v is formatted as %q and parsed as %v, %v", d, got, back, err)
	}
}
