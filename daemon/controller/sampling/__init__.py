"""What sampling of stacks tells: when it is done, where time goes, and where more of it goes than usual. Pure."""
