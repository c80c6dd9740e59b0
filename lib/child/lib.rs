//! Starts, bounds, signals and reaps processes: the only place that does.
