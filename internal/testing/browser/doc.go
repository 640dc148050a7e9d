// Package browser has only tests. They open the pages of tare in a real Chromium, which
// the first test starts. They check what a reader may encounter: charts, keys, narrow
// screens, dark mode and hostile names.
package browser
