() => {
	const width = document.scrollingElement.scrollWidth;
	if (width <= innerWidth && innerWidth <= screen.width) return '';
	const scrolls = e => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
	const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement));
	return width + ' px in ' + innerWidth + ', as of ' + wide.slice(0, 5).map(e => e.outerHTML.slice(0, 150)).join('\n');
}
