"""The benchmark harness: cells to rows (`run`), and rows to tables, comparisons and figures."""
