// Package browser has no code: its tests open the pages of tare in a real Chromium,
// started by the first of them and ended with the last, and look at what a reader
// would meet: pictures, keys, narrow screens, other colours, hostile names.
package browser
