try {
  const theme = localStorage.getItem("tare-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing for files */ }
