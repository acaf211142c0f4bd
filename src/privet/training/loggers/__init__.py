"""Logs of a run: how far it is and what it has cost, for everybody; and, apart from that, what only owners may see."""

from __future__ import annotations

from privet.training.loggers.csv_log import CsvLog
from privet.training.loggers.log_entry import Log, LogEntry
from privet.training.loggers.logbook import Logbook
from privet.training.loggers.mlflow_log import MlflowLog
from privet.training.loggers.tensorboard_log import TensorBoardLog

__all__ = ["CsvLog", "Log", "LogEntry", "Logbook", "MlflowLog", "TensorBoardLog"]
