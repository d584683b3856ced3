"""A publisher at a change stream: what the stream gives is captured into a log of its own, and that
log is published as any other.

    post      captures the stream, and keeps other publishers away from it
    deciding  the rules for rows that are images of a stream
    images    the outcomes of images, as those of their rows
    plugin    how the core comes to both
"""
