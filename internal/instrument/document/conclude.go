package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// mistrust are the findings of all measures, each once, with whose they are.
func mistrust(measures []measure) *page.Section {
	s := &page.Section{Title: "what to mistrust", Style: term.Bold}
	type found struct {
		items []page.Item
		of    []string
	}
	var all []found
	for i := range measures {
		for _, one := range measures[i].mistrust {
			for _, items := range grouped(one.Lists) {
				at := slices.IndexFunc(all, func(f found) bool { return slices.Equal(f.items, items) })
				if at < 0 {
					at, all = len(all), append(all, found{items: items})
				}
				if !slices.Contains(all[at].of, measures[i].name) {
					all[at].of = append(all[at].of, measures[i].name)
				}
			}
		}
	}
	for _, f := range all {
		heading := strings.Join(f.of, ", ")
		at := slices.IndexFunc(s.Lists, func(l page.List) bool { return l.Heading == heading })
		if at < 0 {
			at, s.Lists = len(s.Lists), append(s.Lists, page.List{Heading: heading})
		}
		s.Lists[at].Items = append(s.Lists[at].Items, f.items...)
	}
	if s.Lists == nil {
		s.Title += ": nothing was found"
	}
	return s
}

// grouped are items with those that go on with them.
func grouped(lists []page.List) (all [][]page.Item) {
	for _, l := range lists {
		for _, item := range l.Items {
			if item.Key != "" || len(all) == 0 {
				all = append(all, nil)
			}
			all[len(all)-1] = append(all[len(all)-1], item)
		}
	}
	return all
}

// conclusions are the verdicts of all figures and nothing else.
func conclusions(measures []measure) *page.Section {
	s := &page.Section{Title: "conclusions", Style: term.Bold}
	for i := range measures {
		if items := concluded(measures[i].Figures()); items != nil {
			s.Lists = append(s.Lists, page.List{Heading: measures[i].page.Title, Items: items})
		}
	}
	if s.Lists == nil {
		s.Title += ": nothing was compared or judged"
		return s
	}
	s.Notes = []string{"the verdicts of the figures above, each with its shift and the 95 % interval of that; what a figure was judged to be of stands in parentheses"}
	return s
}

// mostTold is how many verdicts of one kind are told.
const mostTold = 200

// concluded are sentences of verdicts: of each target against its baseline what is
// different, what is the same and what was not decided, and what figures were judged to
// be of. Labels that all of them have alike are left out.
func concluded(all []figure.Figure) (items []page.Item) {
	var told []*figure.Figure
	for i := range all {
		if f := &all[i]; f.Versus != nil || f.Verdict != "" {
			told = append(told, f)
		}
	}
	said, parts, order := map[[2]string]bool{}, map[string][]string{}, []string(nil)
	add := func(key, text string) {
		if text == "" || said[[2]string{key, text}] {
			return
		}
		said[[2]string{key, text}] = true
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], text)
	}
	apart, shared := keys(told)
	// A target with two verdicts needs the labels of their figures.
	verdicts := map[string]string{}
	both := map[string]bool{}
	brief := func(f *figure.Figure) string {
		return strings.TrimPrefix(page.Heading(f.Labels.Get("target"))+labels(f, shared), ", ")
	}
	for _, f := range told {
		if text := brief(f); f.Verdict != "" {
			both[text] = both[text] || verdicts[text] != "" && verdicts[text] != f.Verdict
			verdicts[text] = f.Verdict
		}
	}
	for _, f := range told {
		target := page.Heading(f.Labels.Get("target"))
		if v := f.Versus; v != nil {
			text := page.Heading(f.Quantity) + labels(f, apart) + shift(f)
			if f.Verdict != "" {
				text += " (" + page.Heading(f.Verdict) + ")"
			}
			add(strings.TrimSpace(target+" against "+page.Heading(v.Baseline))+", "+page.Heading(string(v.Verdict)), text)
		}
	}
	for _, f := range told {
		if f.Verdict != "" {
			text := brief(f)
			if both[text] {
				text = strings.TrimPrefix(page.Heading(f.Labels.Get("target"))+", "+page.Heading(f.Quantity)+labels(f, apart), ", ")
			}
			add("judged: "+page.Heading(f.Verdict), text)
		}
	}
	for _, key := range order {
		all := parts[key]
		if n := len(all) - mostTold; n > 0 {
			all = append(all[:mostTold], fmt.Sprintf("and %d more", n))
		}
		items = append(items, page.Item{Key: key, Text: strings.Join(all, "; ")})
	}
	return items
}

// keys are those of labels that tell figures apart, and of those the ones that all have
// which were judged: a verdict is of them together.
func keys(all []*figure.Figure) (apart, shared map[string]bool) {
	apart, shared = map[string]bool{}, map[string]bool{}
	values, has, judgedHas, judged := map[string]map[string]bool{}, map[string]int{}, map[string]int{}, 0
	for _, f := range all {
		for _, l := range f.Labels {
			if values[l.Key] == nil {
				values[l.Key] = map[string]bool{}
			}
			values[l.Key][l.Value] = true
			has[l.Key]++
			if f.Verdict != "" {
				judgedHas[l.Key]++
			}
		}
		if f.Verdict != "" {
			judged++
		}
	}
	for key := range values {
		apart[key] = len(values[key]) > 1 || has[key] < len(all)
		shared[key] = apart[key] && judgedHas[key] == judged
	}
	return apart, shared
}

// shift is a comparison's, with its interval; "" where it is not known.
func shift(f *figure.Figure) string {
	c := page.Change(f)
	if text := strings.Trim(strings.TrimPrefix(c.Head, page.Mark(f.Versus))+" "+c.Tail, " =~"); text != "" {
		return " " + text
	}
	return ""
}

// labels are a figure's but for its target, as far as they are told.
func labels(f *figure.Figure, told map[string]bool) (text string) {
	for _, l := range f.Labels {
		switch _, err := strconv.ParseFloat(l.Value, 64); {
		case l.Key == "target" || !told[l.Key]:
		case err == nil:
			text += fmt.Sprintf(", %s %s", page.Heading(l.Key), page.Heading(l.Value))
		default:
			text += ", " + page.Heading(l.Value)
		}
	}
	return text
}
