"""Reports: offline HTML pages, tables and SVG charts, and the built files of the studio (from ``web/``)."""
