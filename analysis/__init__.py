"""What is done with recorded data, for the command line, the page and the fleet alike."""
