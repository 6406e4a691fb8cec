// The chart of a report: everything it shows is in the page.

const place = document.getElementById("chart");
const known = JSON.parse(document.getElementById("chart-data").textContent);
document.getElementById("explore-section").hidden = false;
new Chart(place).show(known.series, known.rounds);
