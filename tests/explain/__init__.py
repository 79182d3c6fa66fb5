"""What the engine says about itself: plans, reasons, recordings, figures, events."""
