() => {
	const units = {ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3}, wrong = [];
	const value = text => {
		const [, number, unit] = text.trim().match(/^(-?\d[\d.]*) (ns|µs|ms|s|B|KiB|MiB|GiB)(?![\w\/])/) || [];
		return number && Number(number) * units[unit];
	};
	for (const button of document.querySelectorAll('th button')) {
		const head = button.closest('th'), body = head.closest('table').tBodies[0], at = head.cellIndex, before = body.innerText;
		for (const sort of ['ascending', 'descending', 'none']) {
			button.click();
			if (head.ariaSort !== sort) wrong.push(head.textContent + ': aria-sort is ' + head.ariaSort + ', not ' + sort);
			const values = [...body.rows].map(r => value(r.cells[at].textContent)).filter(v => v !== undefined);
			// A cell has two significant digits at least, so it is off by 5 % at most.
			if (sort !== 'none' && values.some((v, i) => i > 0 && (sort === 'ascending' ? values[i - 1] > v * 1.05 + 1e-9 : v > values[i - 1] * 1.05 + 1e-9) && v > 0 && values[i - 1] > 0))
				wrong.push(head.textContent + ' ' + sort + ': ' + values.join(' '));
		}
		if (body.innerText !== before) wrong.push(head.textContent + ': the order of before is not that of after');
	}
	return wrong;
}
