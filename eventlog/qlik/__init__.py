"""Change tables and messages as Qlik-style consumers read them: change_seq, masks, typed values.
Pure: no I/O, no clock.
"""
