"""What leaves a run: the HTML report and the map in it."""

from ronid.export.projection import project
from ronid.export.report import ReportData, render_report, write_report

__all__ = ["ReportData", "project", "render_report", "write_report"]
