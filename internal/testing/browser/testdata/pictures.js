() => [...document.querySelectorAll('figure')].map(f => {
	const data = JSON.parse(f.querySelector('script').textContent).data.values, rows = [...f.querySelectorAll('tbody tr')];
	const told = rows.map(r => r.textContent).join('\n');
	return {
		ID: f.id, Label: f.querySelector('[role=img]')?.ariaLabel || '',
		Marks: [...f.querySelectorAll('svg [class*=mark-] :is(path, rect)')].filter(m => m.getBoundingClientRect().width + m.getBoundingClientRect().height > 0).length,
		Data: data.length, Table: rows.length,
		Lost: data.flatMap(d => [d.panel, d.group, d.series].filter(x => x && !told.includes(x))),
	};
})
