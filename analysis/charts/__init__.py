"""Charts as SVG: text keeps its size at every width, geometry is stretched."""
