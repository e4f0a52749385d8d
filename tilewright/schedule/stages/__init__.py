"""The stage façade: te.create_schedule records what is asked of each operation, and replays it on a Schedule."""
from tilewright.schedule.stages.facade import StageSchedule, create_schedule
from tilewright.schedule.stages.stage import Stage

__all__ = ["Stage", "StageSchedule", "create_schedule"]
