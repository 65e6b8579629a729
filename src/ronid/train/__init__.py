"""Training: one loop, and the stages that several methods share."""
