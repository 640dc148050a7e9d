/*
 * Text output and number parsing of the probe.
 */
#ifndef TARE_TEXT_H
#define TARE_TEXT_H

#include "sys.h"

static char *put(char *p, const char *s)
{
	while (*s)
		*p++ = *s++;
	return p;
}

static char *put_number(char *p, u64 v)
{
	char digits[20];
	int n = 0;
	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static char *put_hex(char *p, u64 v)
{
	int shift = 60;
	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Parses a decimal number with up to `places` digits after the point and returns it
 * times 10^places. Returns -1 for anything else, and for more than 18 digits. */
static i64 number(const char *s, int places)
{
	i64 v = 0;
	int digits = 0, point = 0;
	for (; *s; s++) {
		if (*s == '.' && !point && digits && places) {
			point = 1;
			continue;
		}
		if (*s < '0' || *s > '9' || (point && !places) || ++digits > 18)
			return -1;
		v = v * 10 + (*s - '0');
		places -= point;
	}
	if (!digits || s[-1] == '.')
		return -1;
	for (; places > 0; places--) {
		if (v > 100000000000000000)
			return -1;
		v *= 10;
	}
	return v;
}

#endif
