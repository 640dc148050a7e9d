() => {
	const bars = document.querySelectorAll('.plot[data-zoom] svg .mark-rect path');
	bars[0].scrollIntoView({block: 'center', behavior: 'instant'});
	const box = bars[0].getBoundingClientRect();
	return {X: box.x + box.width / 2, Y: box.y + box.height / 2};
}
