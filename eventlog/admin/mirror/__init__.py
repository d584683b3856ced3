"""Mirrors: tables that are kept equal to source tables by what change tables tell, as far as a watermark says."""
