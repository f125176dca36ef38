"""The report: one HTML file that needs nothing but a browser. Every number in it follows from results.json."""
